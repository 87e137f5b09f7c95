//! Sentences that say the same of several cells, each with shares of its own.

/// Least and most of a share, in per cent.
type Range = (u64, u64);

/// Shares that differ by more, in per cent of the whole, are told apart: half of the time is not all of it.
const NEAR: u64 = 5;

/// A sentence, its shares taken out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sentence<'a> {
    /// `None` where a share stands.
    words: Vec<Option<&'a str>>,
    /// As they were told first, which is what others have to be near.
    first: Vec<Range>,
    shares: Vec<Range>,
}

impl<'a> Sentence<'a> {
    pub(super) fn of(text: &'a str) -> Self {
        let words: Vec<&str> = text.split(' ').collect();
        let mut shares = Vec::new();
        let taken = words.iter().enumerate().map(|(place, word)| {
            let next = words.get(place + 1);
            let share = next.filter(|next| next.starts_with('%'));
            match share.and_then(|_| range(word)) {
                Some(range) => {
                    shares.push(range);
                    None
                }
                None => Some(*word),
            }
        });
        let words = taken.collect();
        Self {
            words,
            first: shares.clone(),
            shares,
        }
    }

    /// Whether another one says the same, with about the same shares.
    pub(super) fn says(&self, other: &Self) -> bool {
        let mut shares = self.first.iter().zip(&other.first);
        let near = |a: u64, b: u64| a.abs_diff(b) <= NEAR;
        self.words == other.words
            && shares.all(|(own, its)| near(own.0, its.0) && near(own.1, its.1))
    }

    /// Takes in the shares of another one that says the same.
    pub(super) fn join(&mut self, other: &Sentence<'_>) {
        for (own, other) in self.shares.iter_mut().zip(&other.shares) {
            *own = (own.0.min(other.0), own.1.max(other.1));
        }
    }
}

impl std::fmt::Display for Sentence<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shares = self.shares.iter();
        for (place, word) in self.words.iter().enumerate() {
            if place > 0 {
                f.write_str(" ")?;
            }
            match word {
                Some(word) => f.write_str(word)?,
                None => {
                    let share = shares.next().map(|(least, most)| told(least, most));
                    f.write_str(&share.unwrap_or_default())?;
                }
            }
        }
        Ok(())
    }
}

/// `97`, `93-99`.
pub(super) fn told<T: PartialEq + std::fmt::Display>(least: &T, most: &T) -> String {
    match least == most {
        true => most.to_string(),
        false => format!("{least}-{most}"),
    }
}

fn range(word: &str) -> Option<Range> {
    let (least, most) = word.split_once('-').unwrap_or((word, word));
    Some((least.parse().ok()?, most.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn joined(texts: &[&str]) -> Option<String> {
        let mut all = Sentence::of(texts[0]);
        for text in &texts[1..] {
            let other = Sentence::of(text);
            if !all.says(&other) {
                return None;
            }
            all.join(&other);
        }
        Some(all.to_string())
    }

    #[test]
    fn shares_become_the_range_that_all_of_them_lie_in() {
        let busy =
            |share: &str| format!("all four disks are {share} % busy, of that 81 % transferring");
        let [a, b, c] = ["93-96", "98", "97-99"].map(busy);
        assert_eq!(joined(&[&a, &b, &c]), Some(busy("93-99")));
        assert_eq!(joined(&[&b, &b]), Some(busy("98")));
        // What is far from the first stays apart, however near to the last it is.
        let [far, further] = ["98-102", "98-104"].map(busy);
        assert_eq!(joined(&[&b, &far]), Some(busy("98-102")));
        assert_eq!(joined(&[&b, &far, &further]), None);
    }

    #[test]
    fn what_says_something_else_is_not_joined() {
        for other in [
            "disk0 and disk2 are 93 % busy",
            "disk0 and disk1 are 93 % busy, of that 90 % reading",
            "disk0 and disk1 are 93 MB/s busy",
            "",
        ] {
            assert_eq!(
                joined(&["disk0 and disk1 are 93 % busy", other]),
                None,
                "{other}"
            );
        }
        // A number that is no share of something has to be the same.
        let of = |cores: u32| {
            format!("the CPU is 5 % busy as far as this load can use its {cores} cores")
        };
        assert_eq!(joined(&[&of(4), &of(8)]), None);
    }

    proptest! {
        /// By itself a sentence is told as it was.
        #[test]
        fn one_alone_stays_as_it_is(text in "([a-z0-9%-]{0,4} ){0,8}[0-9]{1,3}( %)?") {
            let plain = |word: &str| range(word).is_none_or(|(least, most)| told(&least, &most) == word);
            prop_assume!(text.split(' ').all(plain));
            prop_assert_eq!(Sentence::of(&text).to_string(), text);
        }
    }
}
