//! Classes in image file names.

/// A pattern with `{class}` between text that is the same in every name: `*_{class}.png`, `{class}-*`. `*` matches any
/// text, `?` one character. The extension is optional.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamePattern {
    before: Vec<char>,
    behind: Vec<char>,
}

impl NamePattern {
    /// The placeholder for the class.
    pub const CLASS: &str = "{class}";

    /// # Errors
    /// Not exactly one `{class}`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = || format!("“{text}” needs {{class}} once, for example *_{{class}}.png");
        let (before, behind) = text.split_once(Self::CLASS).ok_or_else(wrong)?;
        if behind.contains(Self::CLASS) || before.contains('/') || behind.contains('/') {
            return Err(wrong());
        }
        Ok(Self { before: before.chars().collect(), behind: behind.chars().collect() })
    }

    /// The class in a file name; `None` if the name does not match. It is as long as the pattern allows: with
    /// `*_{class}`, it starts after the first `_`.
    pub fn class<'n>(&self, name: &'n str) -> Option<&'n str> {
        let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
        [stem, name].into_iter().find_map(|name| {
            let ends = || (0..=name.len()).filter(|end| name.is_char_boundary(*end));
            let start = ends().find(|start| fits(&name[..*start], &self.before))?;
            let end = ends().rev().take_while(|end| *end > start).find(|end| fits(&name[*end..], &self.behind))?;
            Some(&name[start..end])
        })
    }
}

/// Whether a whole text matches a pattern of `*`, `?` and literal characters.
fn fits(text: &str, pattern: &[char]) -> bool {
    let text: Vec<char> = text.chars().collect();
    let (mut at, mut next) = (0, 0);
    // The position after the last `*`, and how much it matches.
    let mut star: Option<(usize, usize)> = None;
    while at < text.len() {
        match pattern.get(next) {
            Some('*') => {
                next += 1;
                star = Some((next, at));
            }
            Some(letter) if *letter == '?' || *letter == text[at] => {
                at += 1;
                next += 1;
            }
            _ => {
                let Some((behind, reached)) = star else { return false };
                star = Some((behind, reached + 1));
                (next, at) = (behind, reached + 1);
            }
        }
    }
    pattern[next..].iter().all(|letter| *letter == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longest_class_matches() {
        for (pattern, name, class) in [
            ("*_{class}.png", "0017_cat.png", Some("cat")),
            ("*_{class}.png", "0017_cat.jpg", None),
            ("*_{class}", "n01484850_great_white_shark.JPEG", Some("great_white_shark")),
            ("?????????_{class}", "n01484850_great_white_shark.JPEG", Some("great_white_shark")),
            ("*_*_{class}", "img_0017_traffic_light.jpg", Some("traffic_light")),
            ("{class}_*", "traffic_light_0017.jpg", Some("traffic_light")),
            ("{class}_*_*", "cat_0017_2.jpg", Some("cat")),
            ("{class}_????", "cat_0017.jpg", Some("cat")),
            ("{class}_????", "cat_17.jpg", None),
            ("{class}.*.jpg", "dog.17.jpg", Some("dog")),
            ("{class}", "cat.jpg", Some("cat")),
            ("img-*-{class}-*", "img-1-Käse-2.jpg", Some("Käse")),
            ("*_{class}", "cat.jpg", None),
            ("*_{class}", "cat_.jpg", Some(".jpg")),
        ] {
            assert_eq!(NamePattern::parse(pattern).unwrap().class(name), class, "{pattern} {name}");
        }
        for wrong in ["", "*_cat", "{class}{class}", "{class}/*.jpg"] {
            assert!(NamePattern::parse(wrong).is_err(), "{wrong}");
        }
    }
}
