//! Prices: what a disk or a controller costs, in one currency, exact to its hundredth.
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// An amount of money. Amounts of different currencies are not added or compared: nobody here knows the rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Price {
    hundredths: u64,
    /// Three capital letters, as ISO 4217 has them.
    currency: [u8; 3],
}

/// Signs of currencies and their letters.
const SIGNS: [(&str, &str); 3] = [("€", "EUR"), ("$", "USD"), ("£", "GBP")];

impl Price {
    /// The currency's three letters.
    #[must_use]
    pub fn currency(&self) -> &str {
        // Made of ASCII letters alone.
        std::str::from_utf8(&self.currency).unwrap_or_default()
    }

    /// The amount in units of the currency.
    #[must_use]
    pub fn amount(self) -> f64 {
        self.hundredths as f64 / 100.0
    }

    /// So many times as much; `None` beyond what can be counted.
    #[must_use]
    pub fn times(self, number: u64) -> Option<Self> {
        let hundredths = self.hundredths.checked_mul(number)?;
        Some(Self { hundredths, ..self })
    }

    /// Both together; `None` of two currencies, and beyond what can be counted.
    #[must_use]
    pub fn plus(self, other: Self) -> Option<Self> {
        let hundredths = self.hundredths.checked_add(other.hundredths)?;
        (self.currency == other.currency).then_some(Self { hundredths, ..self })
    }
}

impl fmt::Display for Price {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, rest) = (self.hundredths / 100, self.hundredths % 100);
        match rest {
            0 => write!(f, "{whole} {}", self.currency()),
            _ => write!(f, "{whole}.{rest:02} {}", self.currency()),
        }
    }
}

/// What is no price. What to write instead stands behind the last colon.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParsePriceError {
    /// A number alone.
    #[error(
        "'{0}' is a price without a currency: write \"{0} EUR\", or the letters of another one"
    )]
    NoCurrency(String),
    /// Neither a sign nor three letters.
    #[error("'{0}' names no currency: write its three letters, such as EUR, USD or GBP")]
    Currency(String),
    /// No number, or one with something in it.
    #[error(
        "'{0}' is no price: write digits, a point before hundredths if there are any, and a currency, such as \
         \"1249.90 EUR\""
    )]
    Malformed(String),
    /// Below nothing.
    #[error("the price '{0}' is negative: write what is paid")]
    Negative(String),
    /// Beyond what is counted.
    #[error("the price '{0}' is too large to count")]
    TooLarge(String),
}

impl FromStr for Price {
    type Err = ParsePriceError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        let malformed = || ParsePriceError::Malformed(text.to_owned());
        let digit = |c: char| c.is_ascii_digit();
        let first = text.find(digit).ok_or_else(malformed)?;
        let end = text.rfind(digit).ok_or_else(malformed)? + 1;
        let (before, number, after) = (&text[..first], &text[first..end], &text[end..]);
        if before.contains('-') {
            return Err(ParsePriceError::Negative(text.to_owned()));
        }
        let (whole, hundredths) = match number.split_once('.') {
            None => (number, 0),
            Some((whole, tenths)) if tenths.len() == 1 => {
                (whole, 10 * tenths.parse::<u64>().map_err(|_| malformed())?)
            }
            Some((whole, both)) if both.len() == 2 => {
                (whole, both.parse().map_err(|_| malformed())?)
            }
            Some(_) => return Err(malformed()),
        };
        if !whole.bytes().all(|b| b.is_ascii_digit()) {
            return Err(malformed());
        }
        let word = match (before.trim(), after.trim()) {
            ("", "") => return Err(ParsePriceError::NoCurrency(text.to_owned())),
            ("", word) | (word, "") => word,
            _ => return Err(malformed()),
        };
        let currency = letters(word).ok_or_else(|| {
            // A comma or a second number belongs to the number that was meant.
            let is_word = word.chars().all(char::is_alphabetic);
            match is_word {
                true => ParsePriceError::Currency(word.to_owned()),
                false => malformed(),
            }
        })?;
        let whole: Option<u64> = whole.parse().ok();
        let all = whole.and_then(|n| n.checked_mul(100)?.checked_add(hundredths));
        Ok(Self {
            hundredths: all.ok_or_else(|| ParsePriceError::TooLarge(text.to_owned()))?,
            currency,
        })
    }
}

/// The three letters of a sign or a word.
fn letters(word: &str) -> Option<[u8; 3]> {
    let sign = SIGNS.iter().find(|(sign, _)| *sign == word);
    let word = sign.map_or(word, |(_, letters)| letters);
    let letters: [u8; 3] = word.as_bytes().try_into().ok()?;
    let all = letters.iter().all(u8::is_ascii_alphabetic);
    all.then(|| letters.map(|letter| letter.to_ascii_uppercase()))
}

impl TryFrom<String> for Price {
    type Error = ParsePriceError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<Price> for String {
    fn from(price: Price) -> Self {
        price.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn price(text: &str) -> Price {
        text.parse().unwrap()
    }

    #[test]
    fn prices_as_people_write_them() {
        for (text, shown) in [
            ("430 EUR", "430 EUR"),
            ("430EUR", "430 EUR"),
            ("eur 430", "430 EUR"),
            ("€429.90", "429.90 EUR"),
            ("429.9 €", "429.90 EUR"),
            ("$1200", "1200 USD"),
            ("£0.05", "0.05 GBP"),
            ("0 CHF", "0 CHF"),
            (" 15 CZK ", "15 CZK"),
        ] {
            assert_eq!(price(text).to_string(), shown, "{text}");
            assert_eq!(price(shown), price(text));
        }
    }

    #[test]
    fn what_is_no_price_is_told_with_what_to_write() {
        use ParsePriceError as E;
        let of = |text: &str| text.parse::<Price>().unwrap_err();
        assert_eq!(of("430"), E::NoCurrency("430".to_owned()));
        assert_eq!(of("430 euros"), E::Currency("euros".to_owned()));
        assert_eq!(of("-430 EUR"), E::Negative("-430 EUR".to_owned()));
        for text in [
            "",
            "EUR",
            "1,200 EUR",
            "1.200.50 EUR",
            "4.999 EUR",
            "1 200 EUR",
            "5 EUR 3",
            "EUR 5 USD",
            "5. EUR",
            "¢5",
        ] {
            assert_eq!(of(text), E::Malformed(text.to_owned()), "{text}");
        }
        let large = "999999999999999999999 EUR";
        assert_eq!(of(large), E::TooLarge(large.to_owned()));
    }

    #[test]
    fn prices_add_up() {
        let disk = price("429.90 EUR");
        let four = disk.times(4).unwrap();
        assert_eq!(four.to_string(), "1719.60 EUR");
        assert_eq!(four.plus(price("80.40 EUR")).unwrap().amount(), 1800.0);
        assert_eq!(four.plus(price("80 USD")), None);
        assert_eq!(disk.times(u64::MAX), None);
        assert_eq!(price("0.01 EUR").times(u64::MAX).unwrap().plus(disk), None);
    }
}
