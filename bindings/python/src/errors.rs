//! The library's errors as Python's, with its sentences.

use std::io;

use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use tamis::{
    BuildError, BuildErrorKind, DecodeError, DecodeErrorKind, Full, FullKind, MergeError,
    MergeErrorKind, Unsupported,
};

fn error(name: &'static str, told: String) -> PyErr {
    Python::attach(|py| {
        let class = py
            .import("tamis.errors")
            .and_then(|module| module.getattr(name));
        match class.and_then(|class| class.call1((told,))) {
            Ok(error) => PyErr::from_value(error),
            Err(error) => error,
        }
    })
}

pub(crate) fn unsupported(e: &Unsupported) -> PyErr {
    error("UnsupportedError", e.to_string())
}

pub(crate) fn cannot(told: String) -> PyErr {
    error("UnsupportedError", told)
}

/// A refused insertion, after so many that were not.
pub(crate) fn full(e: &Full, accepted: usize) -> PyErr {
    if let FullKind::Unsupported(cannot) = e.kind() {
        return unsupported(&cannot);
    }
    let refused = error("FullError", e.to_string());
    Python::attach(|py| {
        let set = refused.value(py).setattr("accepted", accepted);
        set.map_or_else(|e| e, |()| refused)
    })
}

pub(crate) fn build(e: &BuildError) -> PyErr {
    match e.kind() {
        BuildErrorKind::Unsupported(cannot) => unsupported(cannot),
        BuildErrorKind::Full(refused) => full(refused, 0),
        _ => error("BuildError", e.to_string()),
    }
}

pub(crate) fn decode(e: &DecodeError) -> PyErr {
    let told = e.to_string();
    match e.kind() {
        DecodeErrorKind::Io(e) => os(e, told),
        _ => error("DecodeError", told),
    }
}

/// An error of the system, in these words; of its number Python makes the class.
pub(crate) fn os(e: &io::Error, told: String) -> PyErr {
    match e.raw_os_error() {
        Some(number) => PyOSError::new_err((number, told)),
        None => io::Error::new(e.kind(), told).into(),
    }
}

pub(crate) fn merge(e: &MergeError) -> PyErr {
    match e.kind() {
        MergeErrorKind::Unsupported(_) => error("UnsupportedError", e.to_string()),
        _ => error("MergeError", e.to_string()),
    }
}
