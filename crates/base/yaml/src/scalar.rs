//! Scalars: text to a value of the type that the key requires.

use crate::names;
use crate::node::{Node, Reported};
use crate::prefix::Prefix;
use crate::tree::Kind;
use guard::is_identifier;
use std::fmt::Display;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;
use strum::VariantArray;
use units::{BitRate, Bytes, FrameRate, Layer, ParseError, Ratio};

impl<'d> Node<'d> {
    /// Text, in quotes or not, on one line or more; not empty.
    ///
    /// # Errors
    /// When it is a list, a map or nothing.
    pub fn text(self) -> Result<&'d str, Reported> {
        match self.kind() {
            Kind::Scalar { text, .. } if !text.is_empty() && !self.is_empty() => Ok(text),
            _ => Err(self.wrong_kind("text")),
        }
    }

    /// Text, in quotes or not, possibly empty.
    fn scalar(self, expected: &str) -> Result<&'d str, Reported> {
        match self.kind() {
            Kind::Scalar { text, .. } if !self.is_empty() => Ok(text),
            _ => Err(self.wrong_kind(expected)),
        }
    }

    /// Text without quotes, the notation of numbers and the like.
    fn plain(self, expected: &str) -> Result<&'d str, Reported> {
        match self.kind() {
            Kind::Scalar { text, quoted: true } => {
                let is_number = text.starts_with(|c: char| c.is_ascii_digit());
                // Without quotes a word would be refused too.
                let help = if expected.contains("number") && !is_number {
                    format!("write {expected} in digits, without quotes, for example `4`")
                } else {
                    format!("write {} without quotes", self.quote(text, "it"))
                };
                let what = format!("expected {expected}, found text in quotes");
                Err(self.mistake(what, help))
            }
            _ => self.scalar(expected),
        }
    }

    /// Text of `length` characters from `a-z`, `0-9` and `-`, fit for names of files and
    /// interfaces.
    ///
    /// # Errors
    /// When it is anything else.
    pub fn identifier(self, length: RangeInclusive<usize>) -> Result<&'d str, Reported> {
        let text = self.text()?;
        if is_identifier(text, length.clone()) {
            return Ok(text);
        }
        let help = format!(
            "use {} to {} characters out of a-z, 0-9 and -",
            length.start(),
            length.end()
        );
        Err(self.mistake(
            format!("{} is not a valid name", self.quote(text, "the value")),
            help,
        ))
    }

    /// One of the known names; returns its value.
    ///
    /// # Errors
    /// When it is none of them; the help names the nearest one and lists all.
    pub fn one_of<T: Copy>(self, noun: &str, known: &[(&'static str, T)]) -> Result<T, Reported> {
        let article = if noun.starts_with(['a', 'e', 'i', 'o', 'u', 'I']) {
            "an"
        } else {
            "a"
        };
        let text = self.scalar(&format!("{article} {noun}"))?;
        known
            .iter()
            .find(|(name, _)| *name == text)
            .map(|(_, value)| *value)
            .ok_or_else(|| {
                let names: Vec<_> = known.iter().map(|(name, _)| *name).collect();
                // The nearest name would show what a secret resembles.
                let compared = if self.document.source.secret {
                    ""
                } else {
                    text
                };
                let what = format!("{} is not known", self.document.source.the(noun, text));
                self.mistake(what, names::help(compared, noun, &names))
            })
    }

    /// One of an enum's names; returns the variant.
    ///
    /// # Errors
    /// As for [`one_of`](Self::one_of).
    pub fn choice<T>(self, noun: &str) -> Result<T, Reported>
    where
        T: VariantArray + Copy + Into<&'static str>,
    {
        let variants = T::VARIANTS.iter().copied();
        let known: Vec<_> = variants.map(|variant| (variant.into(), variant)).collect();
        self.one_of(noun, &known)
    }

    /// `None` for `word`, else what `read` returns.
    ///
    /// # Errors
    /// When it is neither; the help also offers the word.
    pub fn word_or<T>(
        self,
        word: &str,
        read: impl FnOnce(Self) -> Result<T, Reported>,
    ) -> Result<Option<T>, Reported> {
        match self.kind() {
            Kind::Scalar { text, .. } if text == word => Ok(None),
            // The help of `read` alone would hide the word. A map or an empty value is no attempt
            // at a word.
            Kind::Scalar { .. } if !self.is_empty() => read(self).map(Some).inspect_err(|_| {
                self.document
                    .sink
                    .borrow_mut()
                    .amend_help(&format!("or write `{word}`"));
            }),
            _ => read(self).map(Some),
        }
    }

    /// `true`, `on` or `yes`; `false`, `off` or `no`.
    ///
    /// # Errors
    /// When it is anything else.
    pub fn bool(self) -> Result<bool, Reported> {
        let text = self.plain("on or off")?;
        match text {
            "true" | "on" | "yes" => Ok(true),
            "false" | "off" | "no" => Ok(false),
            _ => Err(self.mistake(
                format!("{} is neither on nor off", self.quote(text, "the value")),
                "write `on` or `true`, `off` or `false`",
            )),
        }
    }

    /// A whole number in a range, in decimal digits.
    ///
    /// # Errors
    /// When it is anything else.
    pub fn integer<T>(self, range: RangeInclusive<T>) -> Result<T, Reported>
    where
        T: Copy + Display + PartialOrd + TryFrom<u64>,
    {
        let text = self.plain("a whole number")?;
        let between = format!("from {} to {}", range.start(), range.end());
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        // YAML 1.1 reads `010` as octal, and YAML 1.2 as decimal: neither is safe to assume.
        if !is_number || (text.len() > 1 && text.starts_with('0')) {
            let what = format!("{} is not a whole number", self.quote(text, "the value"));
            return Err(self.mistake(what, format!("write decimal digits only, {between}")));
        }
        // Digits only, so the one reason for an error is a number too large for the type.
        let value = text
            .parse::<u64>()
            .ok()
            .and_then(|value| T::try_from(value).ok());
        value
            .filter(|value| range.contains(value))
            .ok_or_else(|| self.out_of_range(text, &between))
    }

    /// A duration in a range, with its unit.
    ///
    /// # Errors
    /// When it is anything else.
    pub fn duration(self, range: RangeInclusive<Duration>) -> Result<Duration, Reported> {
        let print = |value: &Duration| units::time::print(*value);
        self.quantity("duration", units::time::parse, &range, print)
    }

    /// A size in a range, with its unit.
    ///
    /// # Errors
    /// When it is anything else.
    pub fn size(self, range: RangeInclusive<Bytes>) -> Result<Bytes, Reported> {
        self.quantity("size", Bytes::parse, &range, Bytes::to_string)
    }

    /// A bit rate at a layer in a range of bit/s, with its unit.
    ///
    /// # Errors
    /// When it is anything else.
    pub fn bit_rate(self, layer: Layer, bps: RangeInclusive<u64>) -> Result<BitRate, Reported> {
        let read = |text: &str| BitRate::parse(text, layer).map(BitRate::bps);
        let print = |bps: &u64| BitRate::new(*bps, layer).to_string();
        let bps = self.quantity("bit rate", read, &bps, print)?;
        Ok(BitRate::new(bps, layer))
    }

    /// A frame rate in a range, with its unit.
    ///
    /// # Errors
    /// When it is anything else.
    pub fn frame_rate(self, range: RangeInclusive<FrameRate>) -> Result<FrameRate, Reported> {
        self.quantity("frame rate", FrameRate::parse, &range, FrameRate::to_string)
    }

    /// A ratio in a range, in per cent.
    ///
    /// # Errors
    /// When it is anything else.
    pub fn ratio(self, range: RangeInclusive<Ratio>) -> Result<Ratio, Reported> {
        self.quantity("ratio", Ratio::parse, &range, Ratio::to_string)
    }

    /// A whole number of per cent in a range.
    ///
    /// # Errors
    /// When it is anything else.
    pub fn percent(self, range: RangeInclusive<u16>) -> Result<u16, Reported> {
        let bound = |percent: &u16| Ratio::from_percent((*percent).into());
        let ratio = self.ratio(bound(range.start())..=bound(range.end()))?;
        let percent = ratio
            .percent()
            .and_then(|percent| u16::try_from(percent).ok());
        percent.ok_or_else(|| {
            let what = format!("{ratio} is not a whole number of per cent");
            self.mistake(what, "write whole per cent")
        })
    }

    fn quantity<T: PartialOrd>(
        self,
        noun: &str,
        read: impl Fn(&str) -> Result<T, ParseError>,
        range: &RangeInclusive<T>,
        print: impl Fn(&T) -> String,
    ) -> Result<T, Reported> {
        let text = self.scalar(&format!("a {noun}"))?;
        match read(text) {
            Ok(value) if range.contains(&value) => Ok(value),
            Ok(_) => {
                let between = format!("from {} to {}", print(range.start()), print(range.end()));
                Err(self.out_of_range(text, &between))
            }
            // The parser's error quotes the text.
            Err(_) if self.document.source.secret => Err(self.mistake(
                format!("the value is not a {noun}"),
                "write a number and its unit",
            )),
            Err(error) => {
                let plain = without_thousands(text).filter(|plain| read(plain).is_ok());
                let help = match plain {
                    Some(plain) => format!("write `{plain}`, without a mark between thousands"),
                    None => error.help().to_owned(),
                };
                Err(self.mistake(error.to_string(), help))
            }
        }
    }

    fn out_of_range(self, text: &str, between: &str) -> Reported {
        let what = format!("{} is out of range", self.quote(text, "the value"));
        let subject = self
            .key_name()
            .map_or("it".to_owned(), |key| self.quote(&key, "it"));
        self.mistake(what, format!("{subject} must be {between}"))
    }

    /// A path as written; the caller decides what a relative one is relative to.
    ///
    /// # Errors
    /// When it is not text.
    pub fn path(self) -> Result<PathBuf, Reported> {
        self.text().map(PathBuf::from)
    }

    /// An IPv4 address.
    ///
    /// # Errors
    /// When it is anything else.
    pub fn ipv4(self) -> Result<Ipv4Addr, Reported> {
        self.parsed("an IPv4 address", "for example `192.0.2.1`")
    }

    /// An IPv6 address.
    ///
    /// # Errors
    /// When it is anything else.
    pub fn ipv6(self) -> Result<Ipv6Addr, Reported> {
        self.parsed("an IPv6 address", "for example `2001:db8::1`")
    }

    /// An IPv4 or IPv6 address.
    ///
    /// # Errors
    /// When it is anything else.
    pub fn ip(self) -> Result<IpAddr, Reported> {
        self.parsed("an IP address", "for example `192.0.2.1` or `2001:db8::1`")
    }

    /// An address and a port, for example `192.0.2.1:4500`; port 0 lets the kernel choose.
    ///
    /// # Errors
    /// When it is anything else.
    pub fn socket_address(self) -> Result<SocketAddr, Reported> {
        let help = "write an address and a port, `192.0.2.1:4500` or `\"[2001:db8::1]:4500\"`";
        self.parsed("an address with a port", help)
    }

    /// A TCP or UDP port, from 1 to 65535.
    ///
    /// # Errors
    /// When it is anything else.
    pub fn port(self) -> Result<u16, Reported> {
        self.integer(1..=u16::MAX)
    }

    fn parsed<T: FromStr>(self, noun: &str, help: &str) -> Result<T, Reported> {
        let text = self.scalar(noun)?;
        text.parse().map_err(|_| {
            self.mistake(
                format!("{} is not {noun}", self.quote(text, "the value")),
                help,
            )
        })
    }

    /// An IP prefix whose host bits are zero, for example `10.1.0.0/24`.
    ///
    /// # Errors
    /// When it is anything else.
    pub fn prefix(self) -> Result<Prefix, Reported> {
        let text = self.scalar("an IP prefix")?;
        Prefix::parse(text).map_err(|error| {
            let help = if self.document.source.secret {
                "a prefix is an address and a length".to_owned()
            } else {
                error.help
            };
            self.mistake(
                format!("{} {}", self.quote(text, "the value"), error.what),
                help,
            )
        })
    }

    /// Exactly this many bytes in hexadecimal, two digits each, for keys and the like.
    ///
    /// # Errors
    /// When it is anything else.
    pub fn hex(self, bytes: usize) -> Result<Vec<u8>, Reported> {
        let expected = format!("{bytes} bytes in hexadecimal");
        let text = self.scalar(&expected)?;
        let digits = text.len();
        // Before the length: a wrong character is the more precise mistake, and from here on
        // bytes are digits.
        if let Some(wrong) = text.chars().find(|c| !c.is_ascii_hexdigit()) {
            let what = if self.document.source.secret {
                "the value has a character that is not a hexadecimal digit".to_owned()
            } else {
                format!("`{}` is not a hexadecimal digit", wrong.escape_debug())
            };
            return Err(self.mistake(what, format!("write {expected}: 0-9 and a-f only")));
        }
        if digits != 2 * bytes {
            let what = format!("expected {expected}, found {digits} digits");
            return Err(self.mistake(what, format!("write {} hexadecimal digits", 2 * bytes)));
        }
        Ok(base16ct::mixed::decode_vec(text).expect("pairs of hexadecimal digits"))
    }
}

/// A quantity without marks between thousands: `1500 B` of `1,500 B`; `None` if it has none.
fn without_thousands(text: &str) -> Option<String> {
    let end = text.find(|c: char| !(c.is_ascii_digit() || ",'_ ".contains(c)))?;
    let number = text[..end].trim_end();
    let mut groups = number.split([',', '\'', '_', ' ']);
    let first = groups
        .next()
        .filter(|first| (1..=3).contains(&first.len()))?;
    let others: Vec<&str> = groups.collect();
    let are_whole = others.iter().all(|group| group.len() == 3);
    (are_whole && !others.is_empty())
        .then(|| format!("{first}{} {}", others.concat(), &text[end..]))
}
