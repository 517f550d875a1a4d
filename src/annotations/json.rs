//! JSON values that can have another type than expected: a wrong one is a problem of its entry, not of the file.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor, value::MapAccessDeserializer};
use serde::{Deserialize, Deserializer};

use crate::domain::AnnotatedImageId;

/// A single value.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Scalar {
    /// The key is missing, or its value is `null`.
    #[default]
    Missing,
    Integer(i64),
    Float(f64),
    Bool(bool),
    Text(String),
    /// A list or an object, which was skipped.
    Other,
}

impl Scalar {
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Integer(number) => Some(*number as f64),
            Self::Float(number) => Some(*number),
            Self::Missing | Self::Bool(_) | Self::Text(_) | Self::Other => None,
        }
    }

    /// The id of an image or class. Floats are ids if they are whole and small enough to be unique.
    ///
    /// # Errors
    /// It is not an id. The message follows the location; `key` is the name of the field.
    pub fn into_id(self, key: &str) -> Result<AnnotatedImageId, String> {
        /// 2^53
        const EXACT: f64 = 9_007_199_254_740_992.0;
        match self {
            Self::Integer(number) => Ok(AnnotatedImageId::Number(number)),
            Self::Float(number) if number.fract() == 0.0 && number.abs() < EXACT => {
                Ok(AnnotatedImageId::Number(number as i64))
            }
            Self::Text(text) if !text.is_empty() => Ok(text.into()),
            Self::Missing => Err(format!("has no {key}")),
            Self::Float(number) if number.fract() == 0.0 => {
                Err(format!("has the {key} {number:e}, which is too large for 64 bits; write it as a string"))
            }
            Self::Float(_) | Self::Bool(_) | Self::Text(_) | Self::Other => {
                Err(format!("has the {key} {self}, which is neither an integer nor a string"))
            }
        }
    }

    pub fn is_missing(&self) -> bool {
        *self == Self::Missing
    }

    pub fn into_text(self) -> Option<String> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => formatter.write_str("nothing"),
            Self::Integer(number) => write!(formatter, "{number}"),
            Self::Float(number) => write!(formatter, "{number}"),
            Self::Bool(value) => write!(formatter, "{value}"),
            Self::Text(text) => write!(formatter, "“{}”", shortened(text)),
            Self::Other => formatter.write_str("a list or an object"),
        }
    }
}

/// Text of a file for a message: with visible control characters, and not too long.
pub fn shortened(text: &str) -> String {
    crate::domain::visible(&crate::domain::shortened(text, 80)).into_owned()
}

/// A type that can be read from any JSON.
pub trait Lenient<'de>: Sized {
    fn from_scalar(scalar: Scalar) -> Self;

    fn from_list<A: SeqAccess<'de>>(mut list: A) -> Result<Self, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Self::from_scalar(Scalar::Other))
    }

    fn from_object<A: MapAccess<'de>>(mut object: A) -> Result<Self, A::Error> {
        while object.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Self::from_scalar(Scalar::Other))
    }

    fn read<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(LenientVisitor(PhantomData))
    }
}

struct LenientVisitor<T>(PhantomData<T>);

impl<'de, T: Lenient<'de>> Visitor<'de> for LenientVisitor<T> {
    type Value = T;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<T, E> {
        Ok(T::from_scalar(Scalar::Bool(value)))
    }

    fn visit_i64<E>(self, value: i64) -> Result<T, E> {
        Ok(T::from_scalar(Scalar::Integer(value)))
    }

    fn visit_u64<E>(self, value: u64) -> Result<T, E> {
        Ok(T::from_scalar(i64::try_from(value).map_or(Scalar::Float(value as f64), Scalar::Integer)))
    }

    fn visit_f64<E>(self, value: f64) -> Result<T, E> {
        Ok(T::from_scalar(Scalar::Float(value)))
    }

    fn visit_str<E>(self, value: &str) -> Result<T, E> {
        Ok(T::from_scalar(Scalar::Text(value.to_owned())))
    }

    fn visit_string<E>(self, value: String) -> Result<T, E> {
        Ok(T::from_scalar(Scalar::Text(value)))
    }

    fn visit_unit<E>(self) -> Result<T, E> {
        Ok(T::from_scalar(Scalar::Missing))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<T, A::Error> {
        T::from_list(list)
    }

    fn visit_map<A: MapAccess<'de>>(self, object: A) -> Result<T, A::Error> {
        T::from_object(object)
    }
}

impl Lenient<'_> for Scalar {
    fn from_scalar(scalar: Scalar) -> Self {
        scalar
    }
}

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::read(deserializer)
    }
}

/// Four numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub enum FourNumbers {
    /// The key is missing, or its value is `null` or an empty list.
    #[default]
    Missing,
    Numbers([f64; 4]),
    Other,
}

impl<'de> Lenient<'de> for FourNumbers {
    fn from_scalar(scalar: Scalar) -> Self {
        if scalar.is_missing() { Self::Missing } else { Self::Other }
    }

    fn from_list<A: SeqAccess<'de>>(mut list: A) -> Result<Self, A::Error> {
        let mut numbers = [0.0; 4];
        let mut count = 0;
        let mut are_numbers = true;
        while let Some(value) = list.next_element::<Scalar>()? {
            match (numbers.get_mut(count), value.number()) {
                (Some(place), Some(number)) => *place = number,
                _ => are_numbers = false,
            }
            count += 1;
        }
        Ok(match count {
            0 => Self::Missing,
            4 if are_numbers => Self::Numbers(numbers),
            _ => Self::Other,
        })
    }
}

impl<'de> Deserialize<'de> for FourNumbers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::read(deserializer)
    }
}

/// An object in a list; `None` for any other value.
pub struct Element<T>(pub Option<T>);

impl<'de, T: Deserialize<'de>> Lenient<'de> for Element<T> {
    fn from_scalar(_: Scalar) -> Self {
        Self(None)
    }

    fn from_object<A: MapAccess<'de>>(object: A) -> Result<Self, A::Error> {
        T::deserialize(MapAccessDeserializer::new(object)).map(|entry| Self(Some(entry)))
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Element<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::read(deserializer)
    }
}

/// Passes on each element of a list as it is read, so that the list is never in memory.
pub struct Each<T, F> {
    /// The expected type, for messages.
    what: &'static str,
    visit: F,
    element: PhantomData<T>,
}

impl<T, F: FnMut(u64, Option<T>)> Each<T, F> {
    pub fn new(what: &'static str, visit: F) -> Self {
        Self { what, visit, element: PhantomData }
    }

    pub fn visit_list<'de, A: SeqAccess<'de>>(mut self, mut seq: A) -> Result<(), A::Error>
    where
        T: Deserialize<'de>,
    {
        let mut index = 0;
        while let Some(Element(entry)) = seq.next_element()? {
            (self.visit)(index, entry);
            index += 1;
        }
        Ok(())
    }
}

impl<'de, T: Deserialize<'de>, F: FnMut(u64, Option<T>)> DeserializeSeed<'de> for Each<T, F> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de, T: Deserialize<'de>, F: FnMut(u64, Option<T>)> Visitor<'de> for Each<T, F> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.what)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<(), A::Error> {
        self.visit_list(seq)
    }
}
