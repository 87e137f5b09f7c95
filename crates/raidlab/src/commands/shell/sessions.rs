//! What a shell must ask for when it completes: the sessions of the store. And experiments, which are files of a kind.
use clap::{Arg, Command, ValueHint};
use clap_complete::Shell;

/// Arguments that are sessions: command and argument.
pub(super) const ARGUMENTS: [(&str, &str); 6] = [
    ("show", "id"),
    ("report", "sessions"),
    ("compare", "baseline"),
    ("compare", "candidate"),
    ("export", "sessions"),
    ("remove", "sessions"),
];

/// Marks those arguments for the scripts: no other argument is a user's name.
pub(super) fn mark(mut command: Command) -> Command {
    for (of, argument) in ARGUMENTS {
        let marked = |arg: Arg| arg.value_hint(ValueHint::Username);
        command = command.mut_subcommand(of, |inner| inner.mut_arg(argument, marked));
    }
    command
}

/// What zsh calls to complete a session: each is told with its title.
const ZSH: &str = r#"
_raidlab_sessions() {
    local -a sessions
    sessions=("${(@f)$(raidlab list --names 2>/dev/null)}")
    sessions=("${(@)sessions//:/\\:}")
    sessions=("${(@)sessions//$'\t'/:}")
    _describe -V session sessions || _files
}
"#;

/// Around clap's function for bash, which knows words alone. Behind an option its value is completed.
const BASH: &str = r#"
_raidlab_asking() {
    local word="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}"
    if [[ ${COMP_CWORD} -gt 1 && ${word} != -* && ${before} != -* ]]; then
        case "${COMP_WORDS[1]}" in
            show|report|compare|export|remove)
                COMPREPLY=( $(compgen -W "$(raidlab list --names 2>/dev/null | cut -f 1)" -- "${word}") )
                return 0
                ;;
            plan|run)
                compopt -o filenames 2>/dev/null
                COMPREPLY=( $(compgen -f -X '!*.toml' -- "${word}") $(compgen -d -- "${word}") )
                return 0
                ;;
        esac
    fi
    _raidlab "$@"
}
"#;

/// For fish, which has a word and its title from a line of its own.
const FISH: &str = r#"complete -c raidlab -n "__fish_raidlab_using_subcommand show; or __fish_raidlab_using_subcommand report; or __fish_raidlab_using_subcommand compare; or __fish_raidlab_using_subcommand export; or __fish_raidlab_using_subcommand remove" -f -k -a "(raidlab list --names 2>/dev/null)"
complete -c raidlab -n "__fish_raidlab_using_subcommand plan; or __fish_raidlab_using_subcommand run" -f -k -a "(__fish_complete_suffix .toml)"
"#;

/// The script with what it asks for.
pub(super) fn asking(shell: Shell, script: &str) -> String {
    match shell {
        Shell::Bash => {
            let begin = script
                .rfind("if [[ \"${BASH_VERSINFO")
                .unwrap_or(script.len());
            let (functions, complete) = script.split_at(begin);
            let complete =
                complete.replace("complete -F _raidlab ", "complete -F _raidlab_asking ");
            format!("{functions}{}\n{complete}", BASH.trim_start())
        }
        Shell::Zsh => {
            let script = script
                .replace(":_users'", ":_raidlab_sessions'")
                .replace(":_users\"", ":_raidlab_sessions\"")
                .replace(
                    "':file -- The experiment:_files'",
                    "':file -- The experiment:_files -g \"*.toml\"'",
                );
            // Before the end, which calls the whole.
            let begin = script.rfind("if [ \"$funcstack").unwrap_or(script.len());
            let (functions, end) = script.split_at(begin);
            format!("{functions}{}\n{end}", ZSH.trim_start())
        }
        Shell::Fish => format!("{script}{FISH}"),
        _ => script.to_owned(),
    }
}
