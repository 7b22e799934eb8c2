//! What can be a key, alone and by the million.
//!
//! A key alone is a Python object. Many are a list, any iterable, an array or a column; the last
//! two are read where they lie, without Python and on any number of threads.

use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;

use pyo3::exceptions::{PyMemoryError, PyOverflowError, PyRecursionError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{
    PyByteArray, PyBytes, PyDict, PyInt, PyIterator, PyList, PyMemoryView, PySequence, PyString,
    PyTuple,
};
use tamis::Hashing;

use crate::answers::Form;
use crate::ffi::arrow::Chunks;
use crate::ffi::buffer::Array;
use crate::ffi::objects;

/// Keys that lie in memory side by side.
pub(crate) trait Column: Send + Sync {
    fn len(&self) -> usize;
    /// Hashes the keys from this one on, as many as there is room for. Of a null any hash may come.
    fn hash(&self, hashing: &Hashing, start: usize, out: &mut [u64]);
    fn is_null(&self, i: usize) -> bool;
    fn may_have_nulls(&self) -> bool;
}

/// Parts of keys that a tuple may have.
const PARTS: std::ops::RangeInclusive<usize> = 2..=4;
/// How deep tuples may stand in tuples.
const DEEPEST: usize = 32;

/// The hash of a key; `make` is the caller's function that makes one of an object.
#[inline]
pub(crate) fn hash_key(
    object: &Bound<'_, PyAny>,
    hashing: &Hashing,
    make: Option<&Py<PyAny>>,
) -> PyResult<u64> {
    let made;
    let object = match make {
        None => object,
        Some(make) => {
            made = make.bind(object.py()).call1((object,))?;
            &made
        }
    };
    match objects::hash_plain(object.as_borrowed(), hashing)? {
        Some(hash) => Ok(hash),
        None => hash_other(object, hashing, 0),
    }
}

/// The hash of what is neither text nor bytes nor an `int`.
#[cold]
fn hash_other(object: &Bound<'_, PyAny>, hashing: &Hashing, depth: usize) -> PyResult<u64> {
    let py = object.py();
    if let Ok(tuple) = object.cast::<PyTuple>() {
        if !PARTS.contains(&tuple.len()) {
            let parts = tuple.len();
            return Err(PyTypeError::new_err(format!(
                "a tuple of 2 to 4 keys is a key, not one of {parts}; nest them, or give `key=`"
            )));
        }
        if depth == DEEPEST {
            return Err(PyRecursionError::new_err("a key of tuples nested too deep"));
        }
        let mut hashes = Vec::with_capacity(8 * PARTS.end());
        for part in tuple.iter() {
            let hash = match objects::hash_plain(part.as_borrowed(), hashing)? {
                Some(hash) => hash,
                None => hash_other(&part, hashing, depth + 1)?,
            };
            hashes.extend(hash.to_le_bytes());
        }
        return Ok(hashing.hash_bytes(&hashes));
    }
    if let Ok(bytes) = object.cast::<PyByteArray>() {
        return Ok(hashing.hash_bytes(&bytes.to_vec()));
    }
    let bytes_of = |object: Bound<'_, PyAny>| -> PyResult<u64> {
        Ok(hashing.hash_bytes(object.cast::<PyBytes>()?.as_bytes()))
    };
    if object.cast::<PyMemoryView>().is_ok() {
        return bytes_of(object.call_method0("tobytes")?);
    }
    let kind = object.get_type();
    let module = kind.module()?;
    let (module, name) = (module.to_cow()?, kind.name()?);
    let is_truth = module == "builtins" || module == "numpy" && name.to_cow()?.starts_with("bool");
    if module == "ipaddress" && object.hasattr("packed")? {
        return bytes_of(object.getattr("packed")?);
    }
    if !is_truth && object.hasattr("__index__")? {
        match object.call_method0("__index__") {
            Ok(number) if number.cast::<PyInt>().is_ok() => {
                if let Some(hash) = objects::hash_plain(number.as_borrowed(), hashing)? {
                    return Ok(hash);
                }
            }
            // An array of numpy has the method, and raises.
            Err(e) if !e.is_instance_of::<PyTypeError>(py) => return Err(e),
            _ => {}
        }
    }
    if object.hasattr("__fspath__")? {
        let bytes = py.import("os")?.call_method1("fsencode", (object,))?;
        return bytes_of(bytes);
    }
    Err(PyTypeError::new_err(format!(
        "a key is text, bytes, a whole number, an IP address, a path, or a tuple of 2 to 4 of \
         these, not `{}`; give `key=`, a function that makes one of it",
        kind.qualname()?
    )))
}

/// Many keys, and the form in which answers go back.
pub(crate) struct Input<'py> {
    source: Source<'py>,
    pub(crate) form: Form<'py>,
}

enum Source<'py> {
    Items {
        items: Bound<'py, PyAny>,
        is_list: bool,
        next: usize,
    },
    Iterator(Bound<'py, PyIterator>),
    Array(Option<Box<dyn Column>>),
    Arrow(Chunks),
}

/// A part of many keys.
pub(crate) enum Piece {
    Hashes(Vec<u64>),
    Column(Box<dyn Column>),
}

/// A masked array of numpy: what is masked is null.
struct Masked {
    array: Array,
    mask: Vec<u8>,
}

impl Masked {
    fn of(keys: &Bound<'_, PyAny>) -> PyResult<Masked> {
        let numpy = keys.py().import("numpy")?.getattr("ma")?;
        let mask = numpy.call_method1("getmaskarray", (keys,))?;
        let array = Array::lent(&keys.getattr("data")?)?;
        let mask = mask
            .call_method0("tobytes")?
            .cast::<PyBytes>()?
            .as_bytes()
            .to_vec();
        Ok(Masked { array, mask })
    }
}

impl Column for Masked {
    fn len(&self) -> usize {
        self.array.len()
    }

    fn hash(&self, hashing: &Hashing, start: usize, out: &mut [u64]) {
        self.array.hash(hashing, start, out);
    }

    fn is_null(&self, i: usize) -> bool {
        self.mask.get(i).is_some_and(|&masked| masked != 0)
    }

    fn may_have_nulls(&self) -> bool {
        true
    }
}

/// How many objects are hashed before others may have Python again.
pub(crate) const PIECE: usize = 1 << 14;

impl<'py> Input<'py> {
    /// Tells what `keys` is. With a function that makes keys, all are Python objects.
    pub(crate) fn of(keys: &Bound<'py, PyAny>, make: Option<&Py<PyAny>>) -> PyResult<Input<'py>> {
        let items = |items: Bound<'py, PyAny>, is_list| Source::Items {
            items,
            is_list,
            next: 0,
        };
        let input = |source, form| Ok(Input { source, form });
        if keys.cast_exact::<PyList>().is_ok() {
            return input(items(keys.clone(), true), Form::List);
        }
        if keys.cast_exact::<PyTuple>().is_ok() {
            return input(items(keys.clone(), false), Form::List);
        }
        // A class that extends these may tell another length than it has.
        if keys.cast::<PyList>().is_ok() || keys.cast::<PyTuple>().is_ok() {
            let listed = keys.cast::<PySequence>()?.to_list()?;
            return input(items(listed.into_any(), true), Form::List);
        }
        if keys.cast::<PyString>().is_ok()
            || keys.cast::<PyBytes>().is_ok()
            || keys.cast::<PyByteArray>().is_ok()
            || keys.cast::<PyMemoryView>().is_ok()
        {
            let name = keys.get_type().name()?;
            return Err(PyTypeError::new_err(format!(
                "many keys are wanted, and a `{name}` is one; put it in a list"
            )));
        }
        let form = Form::of(keys)?;
        if make.is_some() && keys.hasattr("columns")? {
            return Err(PyTypeError::new_err(
                "`key=` is called with each object of a list or a column, and this is a table; \
                 give one of its columns",
            ));
        }
        if make.is_some() {
            return input(Source::Iterator(keys.try_iter()?), form);
        }
        match &form {
            Form::Pandas(_) => {
                let source = Input::of_pandas(keys)?;
                input(source.source, form)
            }
            Form::Numpy => {
                if !keys.hasattr("dtype")? {
                    return input(Source::Array(Some(Box::new(Array::lent(keys)?))), form);
                }
                let kind: String = keys.getattr("dtype")?.getattr("kind")?.extract()?;
                // Neither objects nor text of any length can be lent.
                if kind == "O" || kind == "T" {
                    return input(items(keys.call_method0("tolist")?, true), form);
                }
                let column: Box<dyn Column> = match keys.hasattr("mask")? {
                    true => Box::new(Masked::of(keys)?),
                    false => Box::new(Array::lent(keys)?),
                };
                input(Source::Array(Some(column)), form)
            }
            // Of objects Arrow is lent addresses.
            Form::Polars(series) if series.getattr("dtype")?.str()?.to_cow()? == "Object" => {
                input(items(keys.call_method0("to_list")?, true), form)
            }
            _ if keys.hasattr("__arrow_c_array__")? => {
                input(Source::Arrow(Chunks::of_array(keys)?), form)
            }
            _ if keys.hasattr("__arrow_c_stream__")? => {
                input(Source::Arrow(Chunks::of_stream(keys)?), form)
            }
            _ => input(Source::Iterator(keys.try_iter()?), form),
        }
    }

    /// A Series: its integers as numpy's, anything else as a column of Arrow, where missing values
    /// are null.
    fn of_pandas(keys: &Bound<'py, PyAny>) -> PyResult<Input<'py>> {
        let py = keys.py();
        let dtype = keys.getattr("dtype")?;
        let is_numpy = dtype.get_type().module()?.to_cow()?.starts_with("numpy");
        if is_numpy && "iuSU".contains(&dtype.getattr("kind")?.extract::<String>()?) {
            return Input::of(&keys.call_method0("to_numpy")?, None);
        }
        let options = PyDict::new(py);
        options.set_item("from_pandas", true)?;
        let column = py
            .import("pyarrow")
            .and_then(|pyarrow| pyarrow.call_method("array", (keys,), Some(&options)));
        // Without pyarrow, and of objects that are no column, the values are read one by one.
        Input::of(&column.or_else(|_| keys.call_method0("tolist"))?, None)
    }

    /// The next keys: of a list at most `most`, of an iterator a piece, of columns all of one.
    pub(crate) fn next(
        &mut self,
        py: Python<'py>,
        hashing: &Hashing,
        make: Option<&Py<PyAny>>,
        most: usize,
    ) -> PyResult<Option<Piece>> {
        match &mut self.source {
            Source::Items {
                items,
                is_list,
                next,
            } => {
                let hashes = hash_items(items, *is_list, *next, hashing, make, most)?;
                *next += hashes.len();
                Ok((!hashes.is_empty()).then_some(Piece::Hashes(hashes)))
            }
            Source::Iterator(iterator) => {
                py.check_signals()?;
                let mut hashes = Vec::new();
                while hashes.len() < PIECE {
                    match iterator.next() {
                        Some(object) => hashes.push(hash_key(&object?, hashing, make)?),
                        None => break,
                    }
                }
                Ok((!hashes.is_empty()).then_some(Piece::Hashes(hashes)))
            }
            Source::Array(array) => Ok(array.take().map(Piece::Column)),
            Source::Arrow(chunks) => {
                py.check_signals()?;
                let keys = chunks.next(py)?;
                Ok(keys.map(|keys| Piece::Column(py.detach(|| keys.prepared(hashing)))))
            }
        }
    }

    /// The hashes of all keys, and where there are nulls, which are none.
    pub(crate) fn hashes(
        mut self,
        py: Python<'py>,
        hashing: &Hashing,
        make: Option<&Py<PyAny>>,
        threads: usize,
    ) -> PyResult<(Vec<u64>, Option<Vec<bool>>, Form<'py>)> {
        let (mut all, mut valid) = (Vec::new(), None);
        while let Some(piece) = self.next(py, hashing, make, usize::MAX)? {
            py.detach(|| {
                let start = all.len();
                match piece {
                    Piece::Hashes(hashes) if all.is_empty() => all = hashes,
                    Piece::Hashes(hashes) => {
                        room(&mut all, hashes.len())?;
                        all.extend(hashes);
                    }
                    Piece::Column(column) => {
                        room(&mut all, column.len())?;
                        all.resize(start + column.len(), 0);
                        in_parts(threads, &mut all[start..], |first, out| {
                            column.hash(hashing, first, out);
                        });
                        note_nulls(&*column, start, &mut valid)?;
                    }
                }
                if let Some(valid) = &mut valid {
                    room(valid, all.len() - valid.len())?;
                    valid.resize(all.len(), true);
                }
                PyResult::Ok(())
            })?;
        }
        Ok((all, valid, self.form))
    }
}

/// Notes which keys of a column are null, behind `start` keys that are none.
pub(crate) fn note_nulls(
    column: &dyn Column,
    start: usize,
    valid: &mut Option<Vec<bool>>,
) -> PyResult<()> {
    if !column.may_have_nulls() {
        return Ok(());
    }
    let valid = valid.get_or_insert_default();
    room(valid, start - valid.len() + column.len())?;
    valid.resize(start, true);
    valid.extend((0..column.len()).map(|i| !column.is_null(i)));
    Ok(())
}

/// Makes room for more in a list: an array may claim any length, such as one that numpy repeats.
pub(crate) fn room<T>(list: &mut Vec<T>, more: usize) -> PyResult<()> {
    list.try_reserve(more).map_err(|_| {
        PyMemoryError::new_err(format!(
            "the system has no memory for {more} more; give fewer keys at a time"
        ))
    })
}

/// The hashes of the items of a list or a tuple from number `start` on, at most so many.
fn hash_items(
    items: &Bound<'_, PyAny>,
    is_list: bool,
    start: usize,
    hashing: &Hashing,
    make: Option<&Py<PyAny>>,
    most: usize,
) -> PyResult<Vec<u64>> {
    let left = items.len()?.saturating_sub(start).min(most);
    let mut hashes = Vec::new();
    room(&mut hashes, left)?;
    let mut fill = || -> PyResult<()> {
        while hashes.len() < left {
            if make.is_none() {
                let (next, left) = (start + hashes.len(), left - hashes.len());
                objects::hash_items(items, is_list, next, left, hashing, &mut hashes)?;
            }
            // What is left runs Python code, which may have made the list shorter.
            let next = start + hashes.len();
            if hashes.len() < left && next < items.len()? {
                hashes.push(hash_key(&items.get_item(next)?, hashing, make)?);
            } else {
                break;
            }
        }
        Ok(())
    };
    match fill() {
        Ok(()) => Ok(hashes),
        // What the caller's function raises says itself what is wrong.
        Err(e) if make.is_some() => Err(e),
        Err(e) => Err(located(items.py(), e, start + hashes.len())),
    }
}

/// Says of an item that is no key which it is.
fn located(py: Python<'_>, e: PyErr, i: usize) -> PyErr {
    let (value, class) = (e.value(py), e.get_type(py));
    let plain = [
        py.get_type::<PyTypeError>(),
        py.get_type::<PyOverflowError>(),
    ];
    if plain.iter().any(|plain| class.is(plain)) {
        // What cannot be said is left out.
        let _ = value.setattr("args", (format!("item {i}: {value}"),));
    }
    e
}

/// Below this, a thread costs more than it saves.
const WORTH_A_THREAD: usize = 1 << 16;

/// Fills a slice in as many parts as there are threads; `fill` is told where a part begins.
pub(crate) fn in_parts<T: Send>(
    threads: usize,
    out: &mut [T],
    fill: impl Fn(usize, &mut [T]) + Sync,
) {
    let threads = threads.min(out.len() / WORTH_A_THREAD + 1).max(1);
    if threads == 1 {
        return fill(0, out);
    }
    let size = out.len().div_ceil(threads);
    let parts = Mutex::new(out.chunks_mut(size).enumerate());
    let next = || parts.lock().unwrap_or_else(PoisonError::into_inner).next();
    let work = || {
        while let Some((i, part)) = next() {
            fill(i * size, part);
        }
    };
    thread::scope(|scope| {
        // Where the system gives no more threads, those that are there fill all parts.
        let spawn = |_| thread::Builder::new().spawn_scoped(scope, work).ok();
        (1..threads).map_while(spawn).for_each(drop);
        work();
    });
}

/// How many threads `threads=` stands for: 0 is as many as the machine has.
pub(crate) fn threads(asked: usize) -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    let cores = *CORES.get_or_init(|| thread::available_parallelism().map_or(1, usize::from));
    match asked {
        0 => cores,
        // More only wait for each other.
        asked => asked.min(4 * cores),
    }
}
