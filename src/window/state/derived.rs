//! Values that a worker computes from inputs. A change of the inputs triggers a new request; late results are dropped.

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RequestId(pub u64);

/// A value with the inputs it was computed from.
#[derive(Debug)]
pub struct Derived<I, T> {
    pending: Option<(RequestId, I)>,
    inputs: Option<I>,
    value: Option<T>,
}

impl<I, T> Default for Derived<I, T> {
    fn default() -> Self {
        Self { pending: None, inputs: None, value: None }
    }
}

impl<I, T> Derived<I, T> {
    /// The last value, possibly of older inputs.
    pub fn value(&self) -> Option<&T> {
        self.value.as_ref()
    }

    /// Whether a value is being computed.
    pub fn is_under_way(&self) -> bool {
        self.pending.is_some()
    }

    pub(crate) fn pending(&self) -> Option<&(RequestId, I)> {
        self.pending.as_ref()
    }

    /// The inputs of the last value.
    pub(crate) fn inputs(&self) -> Option<&I> {
        self.inputs.as_ref()
    }

    /// The inputs of the pending request, or else of the last value.
    pub(crate) fn newest(&self) -> Option<&I> {
        self.pending.as_ref().map(|(_, inputs)| inputs).or(self.inputs())
    }

    pub(crate) fn begin(&mut self, id: RequestId, inputs: I) {
        self.pending = Some((id, inputs));
    }

    /// Drops a value that would be wrong rather than only outdated.
    pub(crate) fn keep_if(&mut self, is_valid: impl FnOnce(&I) -> bool) {
        if !self.inputs().is_some_and(is_valid) {
            (self.inputs, self.value) = (None, None);
        }
    }

    /// Stores a value; false, without a change, if the request is no longer expected.
    pub(crate) fn take(&mut self, id: RequestId, value: T) -> bool {
        let is_awaited = self.fail(id);
        if is_awaited {
            self.value = Some(value);
        }
        is_awaited
    }

    /// Ends a request without a result: the last value stays, and the same request is not repeated.
    pub(crate) fn fail(&mut self, id: RequestId) -> bool {
        let taken = self.pending.take_if(|(pending, _)| *pending == id);
        let is_awaited = taken.is_some();
        if let Some((_, inputs)) = taken {
            self.inputs = Some(inputs);
        }
        is_awaited
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_result_is_dropped() {
        let mut derived = Derived::default();
        derived.begin(RequestId(1), "old");
        derived.begin(RequestId(2), "new");
        assert!(!derived.take(RequestId(1), 1));
        assert_eq!((derived.value(), derived.newest()), (None, Some(&"new")));
        assert!(derived.take(RequestId(2), 2));
        assert!(!derived.take(RequestId(2), 3));
        assert_eq!((derived.value(), derived.inputs()), (Some(&2), Some(&"new")));
    }

    #[test]
    fn failed_request_keeps_the_last_value() {
        let mut derived = Derived::default();
        derived.begin(RequestId(1), "old");
        derived.take(RequestId(1), 1);
        derived.begin(RequestId(2), "new");
        assert!(derived.fail(RequestId(2)));
        assert_eq!((derived.value(), derived.inputs()), (Some(&1), Some(&"new")));
        derived.keep_if(|inputs| *inputs == "old");
        assert_eq!((derived.value(), derived.inputs()), (None, None));
    }
}
