//! What Python sees of a filter.

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::exceptions::{PyKeyError, PyOSError, PyTypeError, PyValueError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyFrozenSet, PyMemoryView, PySlice, PyTuple, PyType};
use tamis::{AnyFilter, Bloom, Config, Filter as _, Hashed, Keyed, Open, ParamValue, Perfect};

use super::{
    Bytes, CHUNK, Filter, MANY, Ready, Secrecy, Shared, config, file_bytes, key_function, name,
    opening,
};
use crate::answers::Answers;
use crate::errors;
use crate::ffi::buffer::lend;
use crate::keys::{Input, Piece};
use crate::words;

/// The path that an object names: text, bytes, or what has `__fspath__`.
fn path_of(object: &Bound<'_, PyAny>) -> PyResult<PathBuf> {
    let path = object
        .py()
        .import("os")?
        .call_method1("fsdecode", (object,))?;
    path.extract()
}

/// Writes to an open file, which may take less than it is given: one without a buffer does.
fn write_all(file: &Bound<'_, PyAny>, bytes: &Bound<'_, PyMemoryView>) -> PyResult<()> {
    let (mut done, len) = (0, bytes.len()?);
    while done < len {
        let rest = bytes.get_item(PySlice::new(file.py(), done as isize, len as isize, 1))?;
        let written = file.call_method1("write", (rest,))?;
        if written.is_none() {
            // Some tell nothing, and have taken all.
            break;
        }
        match written.extract::<isize>()? {
            written @ 1.. => done += written as usize,
            _ => return Err(PyOSError::new_err("the file takes no more bytes")),
        }
    }
    Ok(())
}

#[pymethods]
impl Filter {
    #[new]
    #[pyo3(signature = (kind = None, capacity = None, fpr = 0.01, keys = None, *, secret = None,
        seed = 0, key = None, threads = 1, **params))]
    #[allow(clippy::too_many_arguments, reason = "each has its name in Python")]
    fn new(
        py: Python<'_>,
        kind: Option<&Bound<'_, PyAny>>,
        capacity: Option<u64>,
        fpr: f64,
        keys: Option<&Bound<'_, PyAny>>,
        secret: Option<&Bound<'_, PyAny>>,
        seed: u64,
        #[pyo3(from_py_with = key_function)] key: Option<Py<PyAny>>,
        threads: usize,
        params: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Filter> {
        if let Some(ready) = kind.and_then(|kind| kind.cast::<Ready>().ok()) {
            let ready = ready.borrow_mut().0.take();
            return ready.ok_or_else(|| PyTypeError::new_err("this filter is an object already"));
        }
        let kind = name(kind)?;
        let config = config(&kind, capacity, fpr, threads, params)?;
        let secrecy = Secrecy::of(secret, seed)?;
        match keys {
            Some(keys) => Filter::build_from(py, config, secrecy, key, keys, false),
            None => py.detach(|| Filter::empty(&config, secrecy, key)),
        }
    }

    /// The filter of a set of keys: each counts once, and their order plays no part. The same file
    /// as the program's `tamis build` makes of them.
    ///
    /// >>> import tamis
    /// >>> tamis.build(["tamis", "sieve"]).kind
    /// 'binary_fuse8'
    #[classmethod]
    #[pyo3(signature = (keys, kind = None, capacity = None, fpr = 0.01, *, secret = None,
        seed = 0, key = None, threads = 1, **params))]
    #[allow(clippy::too_many_arguments, reason = "each has its name in Python")]
    fn build<'py>(
        cls: &Bound<'py, PyType>,
        keys: &Bound<'py, PyAny>,
        kind: Option<&Bound<'py, PyAny>>,
        capacity: Option<u64>,
        fpr: f64,
        secret: Option<&Bound<'py, PyAny>>,
        seed: u64,
        #[pyo3(from_py_with = key_function)] key: Option<Py<PyAny>>,
        threads: usize,
        params: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let config = config(&name(kind)?, capacity, fpr, threads, params)?;
        let secrecy = Secrecy::of(secret, seed)?;
        Filter::build_from(cls.py(), config, secrecy, key, keys, true)?.wrap(cls)
    }

    /// As `build`, from hashes that `hash` or `hash_many` gave.
    #[classmethod]
    #[pyo3(signature = (hashes, kind = None, capacity = None, fpr = 0.01, *, secret = None,
        seed = 0, key = None, threads = 1, **params))]
    #[allow(clippy::too_many_arguments, reason = "each has its name in Python")]
    fn from_hashes<'py>(
        cls: &Bound<'py, PyType>,
        hashes: &Bound<'py, PyAny>,
        kind: Option<&Bound<'py, PyAny>>,
        capacity: Option<u64>,
        fpr: f64,
        secret: Option<&Bound<'py, PyAny>>,
        seed: u64,
        #[pyo3(from_py_with = key_function)] key: Option<Py<PyAny>>,
        threads: usize,
        params: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let config = config(&name(kind)?, capacity, fpr, threads, params)?;
        let secrecy = Secrecy::of(secret, seed)?;
        let (mut hashes, _) = words::of(hashes)?;
        let built = cls
            .py()
            .detach(|| Filter::build_of(config, secrecy, key, &mut hashes, true));
        built?.wrap(cls)
    }

    /// A map from keys to whole numbers below 2**64; `tamis.Map` is the class for it.
    #[classmethod]
    #[pyo3(signature = (keys, values, kind, fpr, *, secret = None, seed = 0, key = None,
        threads = 1, **params))]
    #[allow(clippy::too_many_arguments, reason = "each has its name in Python")]
    fn _from_pairs<'py>(
        cls: &Bound<'py, PyType>,
        keys: &Bound<'py, PyAny>,
        values: &Bound<'py, PyAny>,
        kind: &str,
        fpr: f64,
        secret: Option<&Bound<'py, PyAny>>,
        seed: u64,
        #[pyo3(from_py_with = key_function)] key: Option<Py<PyAny>>,
        threads: usize,
        params: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = cls.py();
        let secrecy = Secrecy::of(secret, seed)?;
        let hashing = secrecy.hashing;
        let input = Input::of(keys, key.as_ref())?;
        let cores = crate::keys::threads(threads);
        let (hashes, valid, _) = input.hashes(py, &hashing, key.as_ref(), cores)?;
        let (values, _) = words::of(values)?;
        if hashes.len() != values.len() {
            let (keys, values) = (hashes.len(), values.len());
            return Err(PyValueError::new_err(format!(
                "{keys} keys and {values} values"
            )));
        }
        if valid.is_some_and(|valid| valid.contains(&false)) {
            return Err(PyValueError::new_err(
                "a null is no key, and has no value; drop them",
            ));
        }
        let config = config(kind, None, fpr, threads, params)?;
        let keyed = py.detach(|| {
            let hashed = hashes.iter().map(|&hash| Hashed(hash));
            let pairs = hashed.zip(values.iter().copied());
            Keyed::<AnyFilter>::from_pairs_with(&config, hashing, pairs)
        });
        let keyed = keyed.map_err(|e| errors::build(&e))?;
        Filter::of(keyed, None, secrecy.secret, Some(config), key).wrap(cls)
    }

    /// Opens a filter's file. It is read and verified; with `mmap=True` its pages are read when
    /// they are used and processes share them. Nobody may change or truncate a mapped file: replace
    /// it by renaming another over it, as `save` does.
    ///
    /// `path` may also be an open binary file, which is read to its end.
    #[classmethod]
    #[pyo3(signature = (path, *, mmap = false, verify = true, secret = None, key = None))]
    fn open<'py>(
        cls: &Bound<'py, PyType>,
        path: &Bound<'py, PyAny>,
        mmap: bool,
        verify: bool,
        secret: Option<&Bound<'py, PyAny>>,
        #[pyo3(from_py_with = key_function)] key: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = cls.py();
        if path.hasattr("read")? {
            return match mmap {
                true => Err(PyTypeError::new_err(
                    "`mmap=True` takes the path of a file, not an open one",
                )),
                false => Filter::load(cls, path, verify, secret, key),
            };
        }
        let path = path_of(path)?;
        let (open, secret) = opening(verify, secret)?;
        let filter = py.detach(|| {
            if mmap {
                let file = crate::ffi::mapped(&path)?;
                return Filter::open_bytes(open, Arc::new(file), secret, key);
            }
            let keyed = open.load(&path).map_err(|e| errors::decode(&e))?;
            Ok(Filter::of(keyed, None, secret, None, key))
        })?;
        filter.wrap(cls)
    }

    /// Opens a filter from the bytes of its file. `bytes`, and a `memoryview` of them, are used
    /// where they lie; anything else is copied first.
    #[classmethod]
    #[pyo3(signature = (data, *, verify = true, secret = None, key = None))]
    fn load<'py>(
        cls: &Bound<'py, PyType>,
        data: &Bound<'py, PyAny>,
        verify: bool,
        secret: Option<&Bound<'py, PyAny>>,
        #[pyo3(from_py_with = key_function)] key: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let bytes = file_bytes(data)?;
        let (open, secret) = opening(verify, secret)?;
        let opened = cls
            .py()
            .detach(|| Filter::open_bytes(open, Arc::new(bytes), secret, key));
        opened?.wrap(cls)
    }

    /// Saves the filter's file, replacing one of that name at once and wholly, or not at all.
    /// `path` may also be a binary file that is open for writing.
    fn save(&self, py: Python<'_>, path: &Bound<'_, PyAny>) -> PyResult<()> {
        if path.hasattr("write")? {
            return write_all(path, &PyMemoryView::from(&self.to_bytes(py))?);
        }
        let path = path_of(path)?;
        let saved = py.detach(|| self.reading().keyed.save(&path));
        saved.map_err(|e| errors::os(&e, format!("{}: {e}", path.display())))
    }

    /// The filter's file as bytes.
    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        let bytes = py.detach(|| self.reading().to_bytes());
        PyBytes::new(py, &bytes)
    }

    /// The filter's file as a `memoryview`, which the filter then lies in: nothing is copied but
    /// by the first call, and by the first change after it. From Python 3.12 on,
    /// `memoryview(filter)` is the same.
    fn view<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyMemoryView>> {
        let bytes = py.detach(|| {
            let mut state = self.writing();
            if let Some(bytes) = &state.bytes {
                return Ok(Arc::clone(bytes));
            }
            let bytes: Bytes = Arc::new(state.keyed.to_bytes());
            let open = Open::new().hashing(self.hashing);
            state.keyed = open
                .bytes(Shared(Arc::clone(&bytes)))
                .map_err(|e| errors::decode(&e))?;
            state.bytes = Some(Arc::clone(&bytes));
            Ok::<_, PyErr>(bytes)
        })?;
        lend(py, bytes)
    }

    /// `memoryview(filter)`, which Python 3.12 and later make of this.
    fn _buffer<'py>(&self, py: Python<'py>, flags: i32) -> PyResult<Bound<'py, PyMemoryView>> {
        // The view itself says which of them it cannot meet.
        let _ = flags;
        self.view(py)
    }

    fn __contains__(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let hash = self.hash_of(key)?;
        Ok(self.read(py, |state| state.keyed.filter().contains(hash)))
    }

    /// Inserts a key.
    fn add(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<()> {
        let hash = self.hash_of(key)?;
        self.add_hash(py, hash)
    }

    /// Inserts a key by its hash.
    fn add_hash(&self, py: Python<'_>, hash: u64) -> PyResult<()> {
        let put = self.write(py, |keyed| keyed.insert(&Hashed(hash)));
        put.map_err(|e| errors::full(&e, 0))
    }

    /// Whether a key seemed to be there before; inserts it if not.
    fn seen(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let hash = self.hash_of(key)?;
        let seen = self.write(py, |keyed| keyed.seen(&Hashed(hash)));
        seen.map_err(|e| errors::full(&e, 0))
    }

    /// Takes out one copy of a key; whether one matched. Only remove what was inserted: removing a
    /// false positive takes another key away.
    fn discard(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let hash = self.hash_of(key)?;
        let removed = self.write(py, |keyed| keyed.remove(&Hashed(hash)));
        removed.map_err(|e| errors::unsupported(&e))
    }

    /// As `discard`, with a `KeyError` where none matched.
    fn remove(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<()> {
        match self.discard(py, key)? {
            true => Ok(()),
            false => Err(PyKeyError::new_err(key.clone().unbind())),
        }
    }

    /// Inserts many keys: of lists, any iterables, arrays of numpy, columns of Arrow, Series of
    /// pandas and polars, or of other filters of the same shape.
    ///
    /// A list, an array or a column with something that is no key changes nothing. An iterable is
    /// inserted as it comes, 16384 keys at a time, and a stream array by array: where one of them
    /// fails, what was inserted before stays. `threads` hash arrays and columns; one inserts.
    #[pyo3(signature = (*others, threads = 1))]
    fn update(&self, others: &Bound<'_, PyTuple>, threads: usize) -> PyResult<()> {
        for other in others {
            match other.cast::<Filter>() {
                Ok(filter) => self.merge(other.py(), filter.get())?,
                Err(_) => self.insert_all(&other, threads)?,
            }
        }
        Ok(())
    }

    /// Inserts many keys; nulls are left out.
    #[pyo3(signature = (keys, *, threads = 1))]
    fn insert_many(&self, keys: &Bound<'_, PyAny>, threads: usize) -> PyResult<()> {
        self.insert_all(keys, threads)
    }

    /// Looks up many keys. Answers come as the keys did: a list for a list, an array for an array,
    /// a column or Series for such a one. A null is answered with null.
    #[pyo3(signature = (keys, *, threads = 1))]
    fn contains_many<'py>(
        &self,
        keys: &Bound<'py, PyAny>,
        threads: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = keys.py();
        let mut input = self.input(keys)?;
        let (key, threads) = (self.key.as_ref(), crate::keys::threads(threads));
        let mut answers = Answers {
            values: Vec::new(),
            valid: None,
        };
        // One thread has them warm in its cache.
        let most = if threads > 1 { MANY } else { 8 * CHUNK };
        while let Some(piece) = input.next(py, &self.hashing, key, most)? {
            py.detach(|| self.look_up(&piece, threads, &mut answers))?;
        }
        answers.give(py, &input.form)
    }

    /// Inserts many keys by their hashes.
    fn insert_hashes(&self, py: Python<'_>, hashes: &Bound<'_, PyAny>) -> PyResult<()> {
        let (hashes, _) = words::of(hashes)?;
        let put = py.detach(|| self.insert_piece(&Piece::Hashes(hashes), 1));
        put.map(drop)
            .map_err(|(full, accepted)| errors::full(&full, accepted))
    }

    /// Whether the key of a hash may have been inserted.
    fn contains_hash(&self, py: Python<'_>, hash: u64) -> bool {
        self.read(py, |state| state.keyed.filter().contains(hash))
    }

    /// Looks up many keys by their hashes.
    #[pyo3(signature = (hashes, *, threads = 1))]
    fn contains_hashes<'py>(
        &self,
        hashes: &Bound<'py, PyAny>,
        threads: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = hashes.py();
        let (hashes, form) = words::of(hashes)?;
        let mut answers = Answers {
            values: Vec::new(),
            valid: None,
        };
        let threads = crate::keys::threads(threads);
        py.detach(|| self.look_up(&Piece::Hashes(hashes), threads, &mut answers))?;
        answers.give(py, &form)
    }

    /// The hash that the filter sees for a key: the same in every process, on every machine and in
    /// every version.
    fn hash(&self, key: &Bound<'_, PyAny>) -> PyResult<u64> {
        self.hash_of(key)
    }

    /// The hashes of many keys.
    #[pyo3(signature = (keys, *, threads = 1))]
    fn hash_many<'py>(
        &self,
        keys: &Bound<'py, PyAny>,
        threads: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, key) = (keys.py(), self.key.as_ref());
        let threads = crate::keys::threads(threads);
        let (values, valid, form) = self.input(keys)?.hashes(py, &self.hashing, key, threads)?;
        Answers { values, valid }.give(py, &form)
    }

    /// How many copies of a key are held: never fewer than were inserted, up to `count_limit`.
    fn count(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<u64> {
        let hash = self.hash_of(key)?;
        let count = self.read(py, |state| state.keyed.count(&Hashed(hash)));
        count.map_err(|e| errors::unsupported(&e))
    }

    /// How many copies of each of many keys are held.
    fn count_many<'py>(&self, keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = keys.py();
        let (mut values, valid, form) = self.hash_all(keys)?;
        let counted = py.detach(|| {
            let state = self.reading();
            let Some(count) = state.keyed.filter().as_count() else {
                return state.keyed.count_limit().map(|_| ());
            };
            for hash in &mut values {
                *hash = count.count(*hash);
            }
            Ok(())
        });
        counted.map_err(|e| errors::unsupported(&e))?;
        Answers { values, valid }.give(py, &form)
    }

    /// Where counting ends: a count of this means so many or more.
    #[getter]
    fn count_limit(&self, py: Python<'_>) -> PyResult<u64> {
        let limit = self.read(py, |state| state.keyed.count_limit());
        limit.map_err(|e| errors::unsupported(&e))
    }

    fn _get(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<Option<u64>> {
        let hash = self.hash_of(key)?;
        let value = self.read(py, |state| state.keyed.get(&Hashed(hash)));
        value.map_err(|e| errors::unsupported(&e))
    }

    fn _get_many<'py>(&self, keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = keys.py();
        let (hashes, valid, form) = self.hash_all(keys)?;
        let got = py.detach(|| {
            let mut out = vec![None; hashes.len()];
            let hashed = hashes.iter().map(|&hash| Hashed(hash));
            self.reading().keyed.get_batch(hashed, &mut out)?;
            Ok(out)
        });
        let got = got.map_err(|e| errors::unsupported(&e))?;
        let is_key = |i: usize| valid.as_ref().is_none_or(|valid| valid[i]);
        let found = got
            .iter()
            .enumerate()
            .map(|(i, value)| value.is_some() && is_key(i));
        let valid = Some(found.collect());
        let values = got.into_iter().map(Option::unwrap_or_default).collect();
        Answers { values, valid }.give(py, &form)
    }

    fn _set(&self, py: Python<'_>, key: &Bound<'_, PyAny>, value: u64) -> PyResult<bool> {
        let hash = self.hash_of(key)?;
        let set = self.write(py, |keyed| {
            let perfect = keyed.downcast_mut::<Perfect>();
            perfect.map(|perfect| perfect.set(hash, value))
        });
        set.ok_or_else(|| {
            let told = format!(
                "a `{}` keeps its values; build a `perfect`, whose values can be changed",
                self.kind.name
            );
            errors::cannot(told)
        })
    }

    fn _touch(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let hash = self.hash_of(key)?;
        let touched = self.write(py, |keyed| keyed.touch(&Hashed(hash)));
        touched.map_err(|e| errors::full(&e, 0))
    }

    fn _advance(&self, py: Python<'_>, seconds: f64) -> PyResult<()> {
        let wrong = |_| PyValueError::new_err("a clock reads seconds from 0 on");
        let now = std::time::Duration::try_from_secs_f64(seconds).map_err(wrong)?;
        let told = self.write(py, |keyed| keyed.advance(now));
        told.map_err(|e| errors::unsupported(&e))
    }

    fn _make_room(&self, py: Python<'_>) {
        self.write(py, |keyed| {
            if let Some(window) = keyed.filter_mut().as_window_mut() {
                window.make_room();
            }
        });
    }

    fn _clock(&self, py: Python<'_>) -> [Option<f64>; 3] {
        self.read(py, |state| match state.keyed.filter().as_window() {
            Some(window) => [window.window_time(), window.now(), window.covered()]
                .map(|time| time.map(|time| time.as_secs_f64())),
            None => [None; 3],
        })
    }

    fn __len__(&self, py: Python<'_>) -> usize {
        self.read(py, |state| {
            usize::try_from(state.keyed.len()).unwrap_or(usize::MAX)
        })
    }

    fn __bool__(&self, py: Python<'_>) -> bool {
        self.read(py, |state| !state.keyed.is_empty())
    }

    /// Whether the other is a filter of the same file: kind, shape, hashing and content.
    fn __eq__<'py>(
        slf: &Bound<'py, Filter>,
        other: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let Ok(other) = other.cast::<Filter>() else {
            return Ok(py.NotImplemented().into_bound(py));
        };
        let (ours, theirs) = (slf.get(), other.get());
        let equal = py.detach(|| {
            std::ptr::eq(ours, theirs)
                || ours.kind.id == theirs.kind.id
                    && ours.hashing.agrees_with(&theirs.hashing)
                    && ours.with(theirs, |a, b| a.to_bytes() == b.to_bytes())
        });
        Ok(equal.into_pyobject(py)?.to_owned().into_any())
    }

    fn __or__<'py>(
        slf: &Bound<'py, Filter>,
        other: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let Ok(other) = other.cast::<Filter>() else {
            return Ok(py.NotImplemented().into_bound(py));
        };
        let union = Filter::copy(slf)?;
        union.cast::<Filter>()?.get().merge(py, other.get())?;
        Ok(union)
    }

    fn __ior__(&self, other: &Bound<'_, PyAny>) -> PyResult<()> {
        match other.cast::<Filter>() {
            Ok(other) => self.merge(other.py(), other.get()),
            Err(_) => Err(PyTypeError::new_err(
                "`|=` takes a filter; `update` takes keys",
            )),
        }
    }

    /// The filter of the keys of all: filters of the same shape, or keys.
    #[pyo3(signature = (*others))]
    fn union<'py>(
        slf: &Bound<'py, Filter>,
        others: &Bound<'py, PyTuple>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let union = Filter::copy(slf)?;
        union.cast::<Filter>()?.get().update(others, 1)?;
        Ok(union)
    }

    fn __and__<'py>(
        slf: &Bound<'py, Filter>,
        other: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let Ok(theirs) = other.cast::<Filter>() else {
            return Ok(py.NotImplemented().into_bound(py));
        };
        let (ours, theirs) = (slf.get(), theirs.get());
        let both = ours.bloom_pair(py, theirs, "intersection", |ours, theirs| {
            ours.intersection(theirs).map(AnyFilter::new)
        })?;
        let config = Config::new(ours.capacity(py)).fpr(ours.requested_fpr(py));
        let both =
            Keyed::from_filter(both, ours.hashing, &config).map_err(|e| errors::build(&e))?;
        let both = both.with_key_form(ours.read(py, |state| state.keyed.key_form()));
        let [field, other] = [ours, theirs].map(|filter| filter.key_field(py));
        let field = (field == other).then_some(field).flatten();
        let both = both.with_key_field(field.as_deref());
        let config = ours.config.clone();
        ours.beside(py, both, config).wrap(&slf.get_type())
    }

    /// A filter that contains every key that is in both; of the kind `bloom` alone, where it errs
    /// no more often than either.
    fn intersection<'py>(
        slf: &Bound<'py, Filter>,
        other: &Bound<'py, Filter>,
    ) -> PyResult<Bound<'py, PyAny>> {
        Filter::__and__(slf, other.as_any())
    }

    /// Whether every key of this filter may be in another, of the kind `bloom` and the same shape.
    /// `False` is certain.
    fn issubset(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<bool> {
        let other = other.cast::<Filter>().map_err(|_| {
            PyTypeError::new_err(
                "a filter keeps no keys to look up among others; `issuperset` takes keys",
            )
        })?;
        self.bloom_pair(py, other.get(), "issubset", |ours, theirs| {
            Ok(ours.intersection(theirs)?.ones() == ours.ones())
        })
    }

    /// Whether all these keys may be in the filter. `False` is certain. Another filter is compared
    /// as by `issubset`.
    fn issuperset(&self, py: Python<'_>, keys: &Bound<'_, PyAny>) -> PyResult<bool> {
        if let Ok(other) = keys.cast::<Filter>() {
            return other
                .get()
                .bloom_pair(py, self, "issuperset", |theirs, ours| {
                    Ok(theirs.intersection(ours)?.ones() == theirs.ones())
                });
        }
        let mut input = self.input(keys)?;
        let key = self.key.as_ref();
        while let Some(piece) = input.next(py, &self.hashing, key, 8 * CHUNK)? {
            let mut answers = Answers {
                values: Vec::new(),
                valid: None,
            };
            py.detach(|| self.look_up(&piece, 1, &mut answers))?;
            let is_key = |i: usize| answers.valid.as_ref().is_none_or(|valid| valid[i]);
            let missing = |(i, &found): (usize, &bool)| !found && is_key(i);
            if answers.values.iter().enumerate().any(missing) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Another filter of the same content.
    fn copy<'py>(slf: &Bound<'py, Filter>) -> PyResult<Bound<'py, PyAny>> {
        slf.get().copied(slf.py()).wrap(&slf.get_type())
    }

    fn __copy__<'py>(slf: &Bound<'py, Filter>) -> PyResult<Bound<'py, PyAny>> {
        let copied = Filter::copy(slf)?;
        // Of a class that extends this one.
        if let Some(attributes) = slf.as_any().getattr_opt("__dict__")? {
            let theirs = copied.getattr("__dict__")?;
            theirs.call_method1("update", (attributes,))?;
        }
        Ok(copied)
    }

    fn __deepcopy__<'py>(
        slf: &Bound<'py, Filter>,
        memo: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let copied = Filter::copy(slf)?;
        if let Some(attributes) = slf.as_any().getattr_opt("__dict__")? {
            let deep = slf.py().import("copy")?.getattr("deepcopy")?;
            let theirs = copied.getattr("__dict__")?;
            theirs.call_method1("update", (deep.call1((attributes, memo))?,))?;
        }
        Ok(copied)
    }

    /// The same filter as an object of another class; this one is a copy of it.
    fn _as<'py>(
        slf: &Bound<'py, Filter>,
        class: &Bound<'py, PyType>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if slf.get_type().is(class) {
            return Ok(slf.clone().into_any());
        }
        slf.get().copied(slf.py()).wrap(class)
    }

    /// Takes all keys out. A filter from a file becomes what its kind makes of its capacity and
    /// rate.
    fn clear(&self, py: Python<'_>) -> PyResult<()> {
        let cleared = py.detach(|| {
            let mut state = self.writing();
            let config = self.config.clone().unwrap_or_else(|| {
                let config = Config::new(0)
                    .kind(self.kind.name)
                    .fpr(state.keyed.requested_fpr());
                let window = state.keyed.filter().as_window();
                match window.and_then(tamis::Window::window_time) {
                    Some(time) => config.set("seconds", time.as_secs()),
                    None => config,
                }
            });
            let config = config.capacity(state.keyed.capacity());
            let empty = Keyed::build_with(&config, self.hashing, [] as [&str; 0])?;
            let empty = empty.with_key_form(state.keyed.key_form());
            state.keyed = empty.with_key_field(state.keyed.key_field());
            state.bytes = None;
            Ok(())
        });
        cleared.map_err(|e| errors::build(&e))
    }

    /// The same keys in half the space, at a higher rate, where the kind can.
    fn halve<'py>(slf: &Bound<'py, Filter>) -> PyResult<Bound<'py, PyAny>> {
        let (py, ours) = (slf.py(), slf.get());
        let half = py.detach(|| ours.reading().keyed.halve());
        let half = half.map_err(|e| errors::build(&e))?;
        ours.beside(py, half, None).wrap(&slf.get_type())
    }

    /// About how many distinct keys there are: of a `bloom` an estimate from its bits, of any other
    /// kind `len`.
    #[getter]
    fn approx_items(&self, py: Python<'_>) -> f64 {
        py.detach(|| {
            let state = self.reading();
            let bloom = state.keyed.downcast_ref::<Bloom>();
            let estimate = bloom.and_then(Bloom::estimate_len);
            estimate.unwrap_or(state.keyed.len() as f64)
        })
    }

    /// The name of its kind.
    #[getter]
    fn kind(&self) -> &'static str {
        self.kind.name
    }

    /// What its kind can do beside lookups, by the names in `Kind.can`.
    #[getter]
    fn can<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyFrozenSet>> {
        let named = self.kind.can.named().into_iter();
        PyFrozenSet::new(py, named.filter(|(_, can)| *can).map(|(name, _)| name))
    }

    /// The number of keys that it was built for.
    #[getter]
    fn capacity(&self, py: Python<'_>) -> u64 {
        self.read(py, |state| state.keyed.capacity())
    }

    /// The false-positive rate to expect now, at the present load. May read the whole filter.
    #[getter]
    fn fpr(&self, py: Python<'_>) -> f64 {
        py.detach(|| self.reading().keyed.fpr())
    }

    /// The false-positive rate that was asked for, at capacity.
    #[getter]
    fn requested_fpr(&self, py: Python<'_>) -> f64 {
        self.read(py, |state| state.keyed.requested_fpr())
    }

    /// How the keys are written in the data that they come from, as far as the file remembers:
    /// "plain", "lowercase", "hex", "int", or "kmer" with K after a space. Keys are hashed as they
    /// are given, whatever it says; the program heeds it.
    #[getter]
    fn key_form(&self, py: Python<'_>) -> String {
        match self.read(py, |state| state.keyed.key_form()).name() {
            (name, Some(k)) => format!("{name} {k}"),
            (name, None) => name.to_string(),
        }
    }

    /// The field, column or path of its records that the keys came from, as far as the file
    /// remembers. The program heeds it.
    #[getter]
    fn key_field(&self, py: Python<'_>) -> Option<String> {
        self.read(py, |state| state.keyed.key_field().map(str::to_string))
    }

    /// How much of its capacity is taken, or `None` where that bounds nothing.
    #[getter]
    fn fill(&self, py: Python<'_>) -> Option<f64> {
        self.read(py, |state| state.keyed.fill())
    }

    /// Every byte that it holds in memory.
    #[getter]
    fn nbytes(&self, py: Python<'_>) -> usize {
        self.read(py, |state| state.keyed.size_in_bytes())
    }

    /// Its shape: every parameter that its file holds, by name.
    #[getter]
    fn params<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let params = self.read(py, |state| state.keyed.params());
        let dict = PyDict::new(py);
        for (name, value) in params {
            match value {
                ParamValue::Whole(value) => dict.set_item(name, value)?,
                ParamValue::Real(value) => dict.set_item(name, value)?,
                _ => dict.set_item(name, value.to_string())?,
            }
        }
        Ok(dict)
    }

    /// The seed of its hashes; `None` where a secret takes its place.
    #[getter]
    fn seed(&self) -> Option<u64> {
        self.hashing.seed()
    }

    fn __repr__(slf: &Bound<'_, Filter>) -> PyResult<String> {
        let (py, ours) = (slf.py(), slf.get());
        let class = slf.get_type().fully_qualified_name()?;
        let (len, capacity, fpr, bytes) = ours.read(py, |state| {
            let keyed = &state.keyed;
            (
                keyed.len(),
                keyed.capacity(),
                keyed.requested_fpr(),
                keyed.size_in_bytes(),
            )
        });
        let kind = ours.kind.name;
        let of = match ours.kind.can.grow {
            true => String::new(),
            false => format!(" of {capacity}"),
        };
        Ok(format!(
            "<{class} {kind}: {len}{of} keys, fpr {fpr}, {bytes} bytes>"
        ))
    }

    fn _repr_html_<'py>(slf: &Bound<'py, Filter>) -> PyResult<Bound<'py, PyAny>> {
        slf.py()
            .import("tamis._html")?
            .call_method1("render", (slf,))
    }

    /// What a pickle holds: the file, and what a file does not tell. A secret is in it.
    fn __reduce__<'py>(slf: &Bound<'py, Filter>) -> PyResult<Bound<'py, PyAny>> {
        let (py, ours) = (slf.py(), slf.get());
        let restore = py.import("tamis._tamis")?.getattr("_restore")?;
        let config = ours.config.as_ref().map(ToString::to_string);
        let secret = ours.secret.map(|secret| PyBytes::new(py, &secret));
        let key = ours.key.as_ref().map(|key| key.clone_ref(py));
        let held = (slf.get_type(), ours.to_bytes(py), config, secret, key);
        let attributes = slf.as_any().getattr_opt("__dict__")?;
        Ok((restore, held, attributes).into_pyobject(py)?.into_any())
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.key)
    }
}
