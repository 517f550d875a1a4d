//! Lists of commands and effects that also take those of an area.

/// Commands or effects in order. Anything that converts to `T` can be pushed: `queue.push(JobsEffect::ReadPrices)`.
#[derive(Debug)]
pub struct Queue<T>(Vec<T>);

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Queue<T> {
    pub fn push(&mut self, item: impl Into<T>) {
        self.0.push(item.into());
    }

    pub fn into_vec(self) -> Vec<T> {
        self.0
    }
}

impl<T> std::ops::Deref for Queue<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T> Extend<T> for Queue<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, items: I) {
        self.0.extend(items);
    }
}

/// Converts an area's type to the general one: `areas!(Command: Jobs(JobsCommand))`.
macro_rules! areas {
    ($whole:ident: $($area:ident($part:ident)),+ $(,)?) => {$(
        impl From<$part> for $whole {
            fn from(part: $part) -> Self {
                Self::$area(part)
            }
        }
    )+};
}
pub(crate) use areas;
