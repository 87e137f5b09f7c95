//! Arguments of the commands that are for a shell and a reader of manuals.
use clap::Args;
use clap_complete::Shell;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = "\
Subcommands, options, files, sessions, experiments, and the names of models, profiles, studies,
layouts and formats are completed. The script belongs to this version: write it anew after an
update. Its directory has to be there: mkdir -p makes it.

Examples:
  raidlab completions bash > ~/.local/share/bash-completion/completions/raidlab
  raidlab completions zsh > ~/.zfunc/_raidlab     with fpath+=~/.zfunc before compinit in .zshrc
  raidlab completions fish > ~/.config/fish/completions/raidlab.fish")]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_enum, value_name = "SHELL")]
    pub(crate) shell: Shell,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  raidlab man > raidlab.1                         then: man ./raidlab.1
  raidlab man --dir ~/.local/share/man/man1       a page for each command: man raidlab-bench")]
pub(crate) struct ManArgs {
    /// Write a page for the program and one for each command into this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}
