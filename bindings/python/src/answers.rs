//! Answers to many questions, in the form in which the keys came.

use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyDict, PyList, PyTuple, PyType};

use crate::ffi::{arrow, objects};

/// What keys came as, and answers go back as.
pub(crate) enum Form<'py> {
    List,
    Numpy,
    /// Any other producer of Arrow data.
    Arrow,
    PyArrow {
        chunked: bool,
    },
    /// The Series that came.
    Polars(Bound<'py, PyAny>),
    Pandas(Bound<'py, PyAny>),
}

impl<'py> Form<'py> {
    /// Tells by the type's module what keys came as.
    pub(crate) fn of(keys: &Bound<'py, PyAny>) -> PyResult<Form<'py>> {
        let kind = keys.get_type();
        let (module, name) = (kind.module()?, kind.name()?);
        let (module, name) = (module.to_cow()?, name.to_cow()?);
        let library = module.split('.').next().unwrap_or_default();
        Ok(match library {
            _ if is_array(&kind)? => Form::Numpy,
            "array" if name == "array" => Form::Numpy,
            "pandas" if keys.hasattr("to_numpy")? && keys.hasattr("dtype")? => {
                Form::Pandas(keys.clone())
            }
            "polars" if name == "Series" => Form::Polars(keys.clone()),
            "pyarrow" => Form::PyArrow {
                chunked: name == "ChunkedArray",
            },
            _ if keys.hasattr("__arrow_c_array__")? || keys.hasattr("__arrow_c_stream__")? => {
                Form::Arrow
            }
            _ => Form::List,
        })
    }
}

/// Whether a type is numpy's array, or extends it as those of files and of masks do.
fn is_array(kind: &Bound<'_, PyType>) -> PyResult<bool> {
    for base in kind.mro() {
        let base = base.cast_into::<PyType>()?;
        if base.name()? == "ndarray" && base.module()? == "numpy" {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Booleans or numbers, some of which may be missing.
pub(crate) struct Answers<T> {
    pub(crate) values: Vec<T>,
    pub(crate) valid: Option<Vec<bool>>,
}

/// What answers are made of.
pub(crate) trait Answer: Copy + Into<u64> {
    /// Arrow's name of the type.
    const FORMAT: &'static std::ffi::CStr;
    /// numpy's.
    const DTYPE: &'static str;
    /// The values as numpy and Arrow have them in memory.
    fn numpy(values: &[Self]) -> Vec<u8>;
    fn arrow(values: &[Self]) -> Vec<u64>;
    fn object(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>>;
    fn list<'py>(py: Python<'py>, values: &[Self]) -> PyResult<Bound<'py, PyAny>>;
}

impl Answer for bool {
    const FORMAT: &'static std::ffi::CStr = c"b";
    const DTYPE: &'static str = "bool";

    fn numpy(values: &[bool]) -> Vec<u8> {
        values.iter().map(|&value| u8::from(value)).collect()
    }

    fn arrow(values: &[bool]) -> Vec<u64> {
        let word = |values: &[bool]| {
            let bits = values.iter().enumerate();
            bits.fold(0, |word, (i, &value)| word | u64::from(value) << i)
        };
        values.chunks(64).map(word).collect()
    }

    fn object(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        Ok(self.into_pyobject(py)?.to_owned().into_any())
    }

    fn list<'py>(py: Python<'py>, values: &[bool]) -> PyResult<Bound<'py, PyAny>> {
        objects::list_of_truths(py, values)
    }
}

impl Answer for u64 {
    const FORMAT: &'static std::ffi::CStr = c"L";
    const DTYPE: &'static str = "uint64";

    fn numpy(values: &[u64]) -> Vec<u8> {
        values
            .iter()
            .flat_map(|value| value.to_ne_bytes())
            .collect()
    }

    fn arrow(values: &[u64]) -> Vec<u64> {
        values.to_vec()
    }

    fn object(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        Ok(self.into_pyobject(py)?.into_any())
    }

    fn list<'py>(py: Python<'py>, values: &[u64]) -> PyResult<Bound<'py, PyAny>> {
        Ok(PyList::new(py, values)?.into_any())
    }
}

impl<T: Answer> Answers<T> {
    /// The answers as a Python object.
    pub(crate) fn give<'py>(
        mut self,
        py: Python<'py>,
        form: &Form<'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if self
            .valid
            .as_ref()
            .is_some_and(|valid| valid.iter().all(|&valid| valid))
        {
            self.valid = None;
        }
        match form {
            Form::List => self.list(py),
            Form::Numpy => self.numpy(py),
            Form::Arrow => Ok(Bound::new(py, self.column())?.into_any()),
            Form::PyArrow { chunked } => {
                let pyarrow = py.import("pyarrow")?;
                let array = pyarrow.call_method1("array", (Bound::new(py, self.column())?,))?;
                match chunked {
                    true => pyarrow.call_method1("chunked_array", (PyList::new(py, [array])?,)),
                    false => Ok(array),
                }
            }
            Form::Polars(keys) => {
                let series = py.import("polars")?.getattr("Series")?;
                let answers = series.call1((Bound::new(py, self.column())?,))?;
                answers.call_method1("rename", (keys.getattr("name")?,))
            }
            Form::Pandas(keys) => {
                // An array of pandas has no name, a Series and an Index have one.
                let named = keys.hasattr("name")?;
                let make = if named { "Series" } else { "array" };
                let make = py.import("pandas")?.getattr(make)?;
                let options = PyDict::new(py);
                if keys.hasattr("index")? {
                    options.set_item("index", keys.getattr("index")?)?;
                }
                if named {
                    options.set_item("name", keys.getattr("name")?)?;
                }
                let dtype = match (&self.valid, T::DTYPE) {
                    (None, dtype) => dtype,
                    (Some(_), "bool") => "boolean",
                    (Some(_), _) => "UInt64",
                };
                options.set_item("dtype", dtype)?;
                let values = match self.valid {
                    None => self.numpy(py)?,
                    Some(_) => self.list(py)?,
                };
                make.call((values,), Some(&options))
            }
        }
    }

    fn list<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let Some(valid) = &self.valid else {
            return T::list(py, &self.values);
        };
        let objects = self
            .values
            .iter()
            .zip(valid)
            .map(|(&value, &valid)| match valid {
                true => value.object(py),
                false => Ok(py.None().into_bound(py)),
            });
        let objects: PyResult<Vec<_>> = objects.collect();
        Ok(PyList::new(py, objects?)?.into_any())
    }

    fn numpy<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        // An array of the module `array` needs no numpy.
        let Ok(numpy) = py.import("numpy") else {
            return self.list(py);
        };
        let lent = |bytes: &[u8], dtype: &str| {
            numpy.call_method1("frombuffer", (PyByteArray::new(py, bytes), dtype))
        };
        let values = lent(&T::numpy(&self.values), T::DTYPE)?;
        let Some(valid) = &self.valid else {
            return Ok(values);
        };
        let missing: Vec<u8> = valid.iter().map(|&valid| u8::from(!valid)).collect();
        let options = PyDict::new(py);
        options.set_item("mask", lent(&missing, "bool")?)?;
        numpy
            .getattr("ma")?
            .call_method("array", (values,), Some(&options))
    }

    fn column(self) -> AnswerColumn {
        let validity = self.valid.as_ref().map(|valid| {
            let bits = bool::arrow(valid).into_iter();
            bits.flat_map(u64::to_le_bytes).collect()
        });
        AnswerColumn {
            format: T::FORMAT,
            len: self.values.len(),
            values: T::arrow(&self.values),
            validity,
        }
    }
}

/// Answers as an array of Arrow's C data interface, which any library of it takes.
#[pyclass(frozen, module = "tamis", name = "Answers")]
pub(crate) struct AnswerColumn {
    format: &'static std::ffi::CStr,
    len: usize,
    values: Vec<u64>,
    validity: Option<Vec<u8>>,
}

#[pymethods]
impl AnswerColumn {
    fn __len__(&self) -> usize {
        self.len
    }

    fn __repr__(&self) -> String {
        let len = self.len;
        format!(
            "<tamis.Answers: {len}, as Arrow data; `pyarrow.array` and `polars.Series` take it>"
        )
    }

    /// The array as a pair of capsules, of its schema and of itself.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let _ = requested_schema;
        let (values, validity) = (self.values.clone(), self.validity.clone());
        arrow::export(py, self.format, self.len, values, validity)
    }
}
