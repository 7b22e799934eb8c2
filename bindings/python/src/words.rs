//! Whole numbers below 2⁶⁴, many of them: hashes and the values of maps.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use crate::answers::Form;
use crate::ffi::arrow::Chunks;
use crate::ffi::buffer::Array;
use crate::keys::{Column, PIECE, room};

/// The numbers of a list, an iterable, an array or a column, and which of these it is.
pub(crate) fn of<'py>(object: &Bound<'py, PyAny>) -> PyResult<(Vec<u64>, Form<'py>)> {
    if object.cast_exact::<PyList>().is_ok() || object.cast_exact::<PyTuple>().is_ok() {
        return Ok((object.extract()?, Form::List));
    }
    let form = Form::of(object)?;
    let unsuited = || PyTypeError::new_err("whole numbers from 0 to 2**64 - 1 are wanted");
    match &form {
        Form::Pandas(series) => {
            let (words, _) = of(&series.call_method0("to_numpy")?)?;
            Ok((words, form))
        }
        Form::Numpy => {
            if object.hasattr("mask")? {
                let numpy = object.py().import("numpy")?.getattr("ma")?;
                if numpy.call_method1("is_masked", (object,))?.is_truthy()? {
                    return Err(PyTypeError::new_err(
                        "some of these numbers are masked; `compressed()` gives the others",
                    ));
                }
            }
            let array = Array::lent(object)?;
            let mut words = Vec::new();
            room(&mut words, array.len())?;
            for i in 0..array.len() {
                words.push(array.word(i).ok_or_else(unsuited)?);
            }
            Ok((words, form))
        }
        Form::List => {
            let mut words = Vec::new();
            for word in object.try_iter()? {
                if words.len() % PIECE == 0 {
                    object.py().check_signals()?;
                    room(&mut words, PIECE)?;
                }
                words.push(word?.extract()?);
            }
            Ok((words, form))
        }
        Form::Arrow | Form::PyArrow { .. } | Form::Polars(_) => {
            let py = object.py();
            let mut chunks = match object.hasattr("__arrow_c_array__")? {
                true => Chunks::of_array(object)?,
                false => Chunks::of_stream(object)?,
            };
            let mut words = Vec::new();
            while let Some(keys) = chunks.next(py)? {
                match keys.words() {
                    Some(part) => words.extend(part),
                    None => return Err(unsuited()),
                }
            }
            Ok((words, form))
        }
    }
}
