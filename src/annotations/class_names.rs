//! Names for annotations with class numbers only.

use crate::domain::{Annotations, LabelSet};

/// Why class names do not fit annotations, to follow their name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ClassNamesError {
    #[error("contains class names and no numbers; remove the class names option")]
    HasNoNumbers,
    #[error("names class {number} “{own}”, but the class names have “{given}”; choose other class names or none")]
    Contradiction { number: i64, own: String, given: String },
    #[error("has class {number}, which the class names do not contain; choose other class names")]
    Unnamed { number: i64 },
}

/// Names all classes.
///
/// # Errors
/// The names do not fit.
pub fn name_classes(annotations: &mut Annotations, labels: &LabelSet) -> Result<(), ClassNamesError> {
    for class in &mut annotations.classes {
        let number = class.number.ok_or(ClassNamesError::HasNoNumbers)?;
        let given = u32::try_from(number).ok().and_then(|number| labels.get(number));
        match (&class.name, given) {
            (Some(own), Some(given)) if own != given => {
                return Err(ClassNamesError::Contradiction { number, own: own.clone(), given: given.to_owned() });
            }
            (Some(_), _) => {}
            (None, Some(given)) => class.name = Some(given.to_owned()),
            (None, None) => return Err(ClassNamesError::Unnamed { number }),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::TruthLabel;

    #[test]
    fn only_numbered_classes_are_named() {
        let labels = LabelSet::parse("cat\ndog").unwrap();
        let named = |number: Option<i64>, name: Option<&str>| {
            let classes = vec![TruthLabel { number, name: name.map(str::to_owned) }];
            let mut annotations = Annotations { classes, ..Annotations::default() };
            name_classes(&mut annotations, &labels).map(|()| annotations.classes.remove(0).name.unwrap())
        };
        assert_eq!(named(Some(1), None).as_deref(), Ok("dog"));
        assert_eq!(named(Some(0), Some("cat")).as_deref(), Ok("cat"));
        let contradiction =
            ClassNamesError::Contradiction { number: 0, own: "cow".to_owned(), given: "cat".to_owned() };
        assert_eq!(named(Some(0), Some("cow")), Err(contradiction));
        assert_eq!(named(Some(2), None), Err(ClassNamesError::Unnamed { number: 2 }));
        assert_eq!(named(None, Some("cat")), Err(ClassNamesError::HasNoNumbers));
    }
}
