//! `tamis.Filter`: a filter of any kind, with the manners of a set.
//!
//! The filter stands behind a lock. Whoever waits for the lock has let go of Python, and whoever
//! holds it runs no Python code, so that the two cannot wait for each other. `methods.rs` has what
//! Python sees.

mod methods;

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyDict, PyMemoryView, PyString, PyType};
use tamis::{
    AnyFilter, Bloom, Config, Filter as _, Full, Hashed, Hashing, Keyed, KindInfo, MergeErrorKind,
    Open,
};

use crate::answers::{Answers, Form};
use crate::errors;
use crate::ffi::buffer::Array;
use crate::keys::{Input, Piece, hash_key, in_parts, note_nulls, room, threads};

/// Bytes that a filter lies in, or was written to.
pub(crate) type Bytes = Arc<dyn AsRef<[u8]> + Send + Sync>;

struct Shared(Bytes);

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        (*self.0).as_ref()
    }
}

/// What the lock guards.
struct State {
    keyed: Keyed<AnyFilter>,
    /// The bytes of its file, where they are known and nothing has changed since.
    bytes: Option<Bytes>,
}

impl State {
    fn to_bytes(&self) -> Vec<u8> {
        match &self.bytes {
            Some(bytes) => (**bytes).as_ref().to_vec(),
            None => self.keyed.to_bytes(),
        }
    }

    /// The filter for changing.
    fn change(&mut self) -> &mut Keyed<AnyFilter> {
        self.bytes = None;
        &mut self.keyed
    }
}

/// A filter of any kind: an approximate set of keys. "No" is certain, "yes" is wrong at a small
/// rate.
///
/// `kind` is the name of one of `tamis.kinds()`, or "auto" for one that suits. `capacity` is the
/// number of keys to come; without it the kind that suits grows, or is built of `keys` and takes no
/// others. `fpr` is the rate at capacity. `seed`, or `secret` (16 bytes, 32 hexadecimal digits, or
/// "random"), changes the hashes. `key` is a function that makes a key of each object. `threads`
/// hash and build; 0 is as many as the machine has. Any other name is a parameter of the kind.
///
/// >>> import tamis
/// >>> seen = tamis.Filter(capacity=1000, fpr=0.001)
/// >>> seen.add("alice")
/// >>> "alice" in seen, "bob" in seen
/// (True, False)
/// >>> seen.update(["bob", "carol"])
/// >>> seen.contains_many(["bob", "dave"])
/// [True, False]
#[pyclass(frozen, subclass, weakref, module = "tamis", name = "Filter")]
pub(crate) struct Filter {
    state: RwLock<State>,
    hashing: Hashing,
    kind: &'static KindInfo,
    /// What it was made with; `None` for one that comes from a file.
    config: Option<Config>,
    /// The secret that its files do not carry.
    secret: Option<[u8; 16]>,
    /// Makes a key of an object.
    key: Option<Py<PyAny>>,
}

/// A filter on its way to becoming an object of `Filter` or of a class that extends it.
#[pyclass(module = "tamis", name = "_Ready")]
pub(crate) struct Ready(Option<Filter>);

/// How keys become hashes, and what is told of it.
#[derive(Clone, Copy)]
pub(crate) struct Secrecy {
    pub(crate) hashing: Hashing,
    secret: Option<[u8; 16]>,
}

impl Secrecy {
    /// `secret` is 16 bytes, 32 hexadecimal digits, or "random".
    pub(crate) fn of(secret: Option<&Bound<'_, PyAny>>, seed: u64) -> PyResult<Secrecy> {
        let Some(given) = secret else {
            let hashing = Hashing::fast(seed);
            return Ok(Secrecy {
                hashing,
                secret: None,
            });
        };
        if seed != 0 {
            return Err(PyValueError::new_err(
                "a seed and a secret are two ways to hash; give one of them",
            ));
        }
        let wrong =
            || PyValueError::new_err("a secret is 16 bytes, 32 hexadecimal digits, or \"random\"");
        let bytes: [u8; 16] = if let Ok(text) = given.cast::<PyString>() {
            let text = text.to_cow()?;
            if text == "random" {
                let hashing = Hashing::random()?;
                return Ok(Secrecy {
                    hashing,
                    secret: None,
                });
            }
            let digit = |i: usize| u8::from_str_radix(text.get(2 * i..2 * i + 2)?, 16).ok();
            let digits: Option<Vec<u8>> = (0..16).map(digit).collect();
            let whole = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
            let digits = digits
                .filter(|_| whole)
                .and_then(|bytes| bytes.try_into().ok());
            digits.ok_or_else(wrong)?
        } else if let Ok(bytes) = given.cast::<PyBytes>() {
            bytes.as_bytes().try_into().map_err(|_| wrong())?
        } else {
            return Err(PyTypeError::new_err("a secret is `bytes` of 16, or text"));
        };
        Ok(Secrecy {
            hashing: Hashing::secret(bytes).withheld(),
            secret: Some(bytes),
        })
    }
}

/// The name of the kind that suits where none is named.
const AUTO: &str = "auto";
/// The kind for keys whose number nobody knows.
const ENDLESS: &str = "scalable";

/// The configuration that the arguments of a constructor give.
pub(crate) fn config(
    kind: &str,
    capacity: Option<u64>,
    fpr: f64,
    asked: usize,
    params: Option<&Bound<'_, PyDict>>,
) -> PyResult<Config> {
    let mut config = Config::new(capacity.unwrap_or(0))
        .fpr(fpr)
        .threads(threads(asked));
    if kind != AUTO {
        config = config.kind(kind);
    }
    if let Some(params) = params {
        for (name, value) in params {
            let name: String = name.extract()?;
            if kind == AUTO {
                let told = format!("`{name}` is a parameter of some kinds; name one by `kind=`");
                return Err(PyTypeError::new_err(told));
            }
            config = config.set(&name, value.str()?.to_cow()?);
        }
    }
    Ok(config)
}

/// The kind of a configuration, by its name or, for so many keys, by what suits.
fn chosen(config: &Config, keys: Option<u64>) -> PyResult<&'static KindInfo> {
    let name = match (&config.kind, keys) {
        (Some(name), _) => name,
        (None, None) if config.capacity == 0 => ENDLESS,
        (None, keys) => tamis_cli::default_kind(config, keys.unwrap_or(0)).kind,
    };
    tamis::kind(name).map_err(|e| errors::build(&e))
}

impl Filter {
    fn of(
        keyed: Keyed<AnyFilter>,
        bytes: Option<Bytes>,
        secret: Option<[u8; 16]>,
        config: Option<Config>,
        key: Option<Py<PyAny>>,
    ) -> Filter {
        Filter {
            hashing: *keyed.hashing(),
            kind: keyed.kind(),
            state: RwLock::new(State { keyed, bytes }),
            config,
            secret,
            key,
        }
    }

    /// The object of a class for this filter.
    fn wrap<'py>(self, class: &Bound<'py, PyType>) -> PyResult<Bound<'py, PyAny>> {
        let py = class.py();
        let new = py.get_type::<Filter>().getattr("__new__")?;
        let made = new.call1((class, Bound::new(py, Ready(Some(self)))?))?;
        match class.getattr_opt("_needs")? {
            Some(needs) => py.import("tamis")?.call_method1("_checked", (made, needs)),
            None => Ok(made),
        }
    }

    /// A filter beside this one, with the same hashing.
    fn beside(&self, py: Python<'_>, keyed: Keyed<AnyFilter>, config: Option<Config>) -> Filter {
        let key = self.key.as_ref().map(|key| key.clone_ref(py));
        Filter::of(keyed, None, self.secret, config, key)
    }

    /// Another filter of the same content.
    fn copied(&self, py: Python<'_>) -> Filter {
        let (keyed, bytes) = py.detach(|| {
            let state = self.reading();
            (state.keyed.clone(), state.bytes.clone())
        });
        let key = self.key.as_ref().map(|key| key.clone_ref(py));
        Filter::of(keyed, bytes, self.secret, self.config.clone(), key)
    }

    fn reading(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn writing(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads; waits for the lock, if it must, without Python.
    #[inline]
    fn read<T: Send>(&self, py: Python<'_>, read: impl FnOnce(&State) -> T + Send) -> T {
        match self.state.try_read() {
            Ok(state) => read(&state),
            Err(_) => py.detach(|| read(&self.reading())),
        }
    }

    /// Changes; waits for the lock, if it must, without Python.
    #[inline]
    fn write<T: Send>(
        &self,
        py: Python<'_>,
        change: impl FnOnce(&mut Keyed<AnyFilter>) -> T + Send,
    ) -> T {
        match self.state.try_write() {
            Ok(mut state) => change(state.change()),
            Err(_) => py.detach(|| change(self.writing().change())),
        }
    }

    #[inline]
    fn hash_of(&self, key: &Bound<'_, PyAny>) -> PyResult<u64> {
        hash_key(key, &self.hashing, self.key.as_ref())
    }

    fn input<'py>(&self, keys: &Bound<'py, PyAny>) -> PyResult<Input<'py>> {
        Input::of(keys, self.key.as_ref())
    }

    /// Both filters, this one for reading: locked in one order by all threads, so that none waits
    /// for another in a circle. Detached from Python.
    fn with<T>(&self, other: &Filter, both: impl FnOnce(&State, &State) -> T) -> T {
        if std::ptr::eq(self, other) {
            let state = self.reading();
            return both(&state, &state);
        }
        let (ours, theirs);
        if std::ptr::from_ref(self) < std::ptr::from_ref(other) {
            ours = self.reading();
            theirs = other.reading();
        } else {
            theirs = other.reading();
            ours = self.reading();
        }
        both(&ours, &theirs)
    }

    /// Takes in another filter.
    fn merge(&self, py: Python<'_>, other: &Filter) -> PyResult<()> {
        py.detach(|| {
            if std::ptr::eq(self, other) {
                let mut state = self.writing();
                let copy = state.keyed.clone();
                return state.change().merge(&copy);
            }
            let (mut ours, theirs);
            if std::ptr::from_ref(self) < std::ptr::from_ref(other) {
                ours = self.writing();
                theirs = other.reading();
            } else {
                theirs = other.reading();
                ours = self.writing();
            }
            ours.keyed.merge(&theirs.keyed)?;
            ours.bytes = None;
            Ok(())
        })
        .map_err(|e| errors::merge(&e))
    }

    /// Inserts the hashes of a piece, and tells how many; on `Err`, how many were before the
    /// refused one. The piece is borrowed, as to let go of it may run Python code.
    fn insert_piece(&self, piece: &Piece, threads: usize) -> Result<usize, (Full, usize)> {
        let mut state = self.writing();
        let keyed = state.change();
        let insert = match keyed.filter_mut().as_insert() {
            Some(insert) => insert,
            // Says that the kind cannot.
            None => {
                return keyed
                    .insert(&Hashed(0))
                    .map_or_else(|full| Err((full, 0)), |()| Ok(0));
            }
        };
        let mut done = 0;
        let mut put = |hashes: &[u64]| {
            let put = insert.insert_batch(hashes);
            put.map_err(|full| (full, done + full.accepted()))?;
            done += hashes.len();
            Ok(())
        };
        let column = match piece {
            Piece::Hashes(hashes) => {
                put(hashes)?;
                return Ok(done);
            }
            Piece::Column(column) => column,
        };
        let nulls = column.may_have_nulls();
        let size = if threads > 1 { MANY } else { CHUNK };
        let mut hashes = vec![0; size.min(column.len())];
        for start in (0..column.len()).step_by(size) {
            let end = column.len().min(start + size);
            let hashes = &mut hashes[..end - start];
            in_parts(threads, hashes, |first, out| {
                column.hash(&self.hashing, start + first, out);
            });
            if !nulls {
                put(hashes)?;
                continue;
            }
            let mut kept = 0;
            for i in 0..hashes.len() {
                if !column.is_null(start + i) {
                    hashes[kept] = hashes[i];
                    kept += 1;
                }
            }
            put(&hashes[..kept])?;
        }
        Ok(done)
    }

    /// Looks up the keys of a piece behind the answers that are there.
    fn look_up(&self, piece: &Piece, threads: usize, answers: &mut Answers<bool>) -> PyResult<()> {
        let state = self.reading();
        let filter = state.keyed.filter();
        let start = answers.values.len();
        match piece {
            Piece::Hashes(hashes) => {
                room(&mut answers.values, hashes.len())?;
                answers.values.resize(start + hashes.len(), false);
                in_parts(threads, &mut answers.values[start..], |first, out| {
                    filter.contains_batch(&hashes[first..first + out.len()], out);
                });
            }
            Piece::Column(column) => {
                room(&mut answers.values, column.len())?;
                answers.values.resize(start + column.len(), false);
                in_parts(threads, &mut answers.values[start..], |first, out| {
                    let mut hashes = [0; CHUNK];
                    for (i, out) in out.chunks_mut(CHUNK).enumerate() {
                        let hashes = &mut hashes[..out.len()];
                        column.hash(&self.hashing, first + i * CHUNK, hashes);
                        filter.contains_batch(hashes, out);
                    }
                });
                note_nulls(&**column, start, &mut answers.valid)?;
            }
        }
        if let Some(valid) = &mut answers.valid {
            room(valid, answers.values.len() - valid.len())?;
            valid.resize(answers.values.len(), true);
        }
        Ok(())
    }

    /// Inserts many keys.
    fn insert_all(&self, keys: &Bound<'_, PyAny>, asked: usize) -> PyResult<()> {
        let py = keys.py();
        let mut input = self.input(keys)?;
        let (key, threads) = (self.key.as_ref(), threads(asked));
        // A kind that takes none says so before a key is looked at.
        if !self.kind.can.insert {
            let refused = self.write(py, |keyed| keyed.insert(&Hashed(0)));
            return refused.map_err(|e| errors::full(&e, 0));
        }
        let mut before = 0;
        // All of a list is hashed before any of it is inserted: a wrong key changes nothing.
        while let Some(piece) = input.next(py, &self.hashing, key, usize::MAX)? {
            let put = py.detach(|| self.insert_piece(&piece, threads));
            before += put.map_err(|(full, accepted)| errors::full(&full, before + accepted))?;
        }
        Ok(())
    }

    /// The hashes of many keys, and where there are nulls, which are none.
    fn hash_all<'py>(
        &self,
        keys: &Bound<'py, PyAny>,
    ) -> PyResult<(Vec<u64>, Option<Vec<bool>>, Form<'py>)> {
        let input = self.input(keys)?;
        input.hashes(keys.py(), &self.hashing, self.key.as_ref(), 1)
    }

    /// A filter of hashes, for a configuration. A set holds each once, in the order of the hashes.
    fn build_of(
        config: Config,
        secrecy: Secrecy,
        key: Option<Py<PyAny>>,
        hashes: &mut Vec<u64>,
        as_set: bool,
    ) -> PyResult<Filter> {
        let keys = hashes.len() as u64;
        // Where there is room for more, it is the distinct keys that decide which kind suits.
        let chooses = as_set && config.kind.is_none() && config.capacity > 0;
        let kind = chosen(&config, Some(keys))?;
        let built = if as_set && (chooses || kind.can.insert) {
            tamis_cli::build(&config, secrecy.hashing, hashes)
        } else {
            // Kinds that are built once make the same of a set in whatever order, repeats or not.
            // One that counts in place finds out by itself how many keys are distinct.
            let is_found = as_set || kind.copies == u64::MAX;
            let room = if is_found { 0 } else { keys };
            let config = config.clone().kind(kind.name);
            let config = config.clone().capacity(config.capacity.max(room));
            kind.build(&config, hashes)
                .and_then(|filter| Keyed::from_filter(filter, secrecy.hashing, &config))
        };
        let keyed = built.map_err(|e| errors::build(&e))?;
        let config = config.kind(keyed.kind().name);
        Ok(Filter::of(keyed, None, secrecy.secret, Some(config), key))
    }

    /// The filter of the keys that are not null.
    fn build_from<'py>(
        py: Python<'py>,
        config: Config,
        secrecy: Secrecy,
        key: Option<Py<PyAny>>,
        keys: &Bound<'py, PyAny>,
        as_set: bool,
    ) -> PyResult<Filter> {
        let input = Input::of(keys, key.as_ref())?;
        let (mut hashes, valid, _) =
            input.hashes(py, &secrecy.hashing, key.as_ref(), config.threads)?;
        py.detach(|| {
            without_nulls(&mut hashes, valid.as_deref());
            Filter::build_of(config, secrecy, key, &mut hashes, as_set)
        })
    }

    fn empty(config: &Config, secrecy: Secrecy, key: Option<Py<PyAny>>) -> PyResult<Filter> {
        let config = config.clone().kind(chosen(config, None)?.name);
        let keyed = Keyed::new_with(&config, secrecy.hashing).map_err(|e| errors::build(&e))?;
        Ok(Filter::of(keyed, None, secrecy.secret, Some(config), key))
    }

    /// Opens bytes, which are used where they lie.
    fn open_bytes(
        open: Open,
        bytes: Bytes,
        secret: Option<[u8; 16]>,
        key: Option<Py<PyAny>>,
    ) -> PyResult<Filter> {
        let keyed = open
            .bytes(Shared(Arc::clone(&bytes)))
            .map_err(|e| errors::decode(&e))?;
        Ok(Filter::of(keyed, Some(bytes), secret, None, key))
    }
}

/// Keys that are hashed before their hashes are looked up or inserted together.
const CHUNK: usize = 1024;
/// The same, where several threads hash.
const MANY: usize = 1 << 20;

pub(crate) fn without_nulls(hashes: &mut Vec<u64>, valid: Option<&[bool]>) {
    if let Some(valid) = valid {
        let mut valid = valid.iter();
        hashes.retain(|_| valid.next().copied().unwrap_or(true));
    }
}

/// Bytes of an object that holds a file, without a copy where it is `bytes` or a view of one.
pub(crate) fn file_bytes(data: &Bound<'_, PyAny>) -> PyResult<PyBackedBytes> {
    if data.cast::<PyBytes>().is_ok() {
        return Ok(data.extract()?);
    }
    if data.cast::<PyString>().is_ok() {
        return Err(PyTypeError::new_err(
            "the bytes of a file are wanted; `tamis.open` takes its path",
        ));
    }
    if data.hasattr("read")? {
        let read = data.call_method0("read")?;
        let text =
            |_| PyTypeError::new_err("a file of bytes is wanted; open it with the mode `rb`");
        return Ok(read.cast_into::<PyBytes>().map_err(text)?.into());
    }
    let view = PyMemoryView::from(data)?;
    let lender = view.getattr("obj")?;
    if let Ok(bytes) = lender.cast::<PyBytes>()
        && view.getattr("c_contiguous")?.is_truthy()?
        && view.getattr("nbytes")?.extract::<usize>()? == bytes.as_bytes().len()
    {
        return Ok(bytes.clone().into());
    }
    Ok(view.call_method0("tobytes")?.cast_into::<PyBytes>()?.into())
}

impl Filter {
    /// What two Bloom filters of one hashing tell together.
    fn bloom_pair<T: Send>(
        &self,
        py: Python<'_>,
        other: &Filter,
        what: &str,
        tell: impl FnOnce(&Bloom, &Bloom) -> Result<T, tamis::MergeError> + Send,
    ) -> PyResult<T> {
        if !self.hashing.agrees_with(&other.hashing) {
            return Err(PyValueError::new_err(format!(
                "filters of two hashings have no {what}; build both with one seed or secret"
            )));
        }
        let told = py.detach(|| {
            self.with(other, |ours, theirs| {
                let [one, other] = [ours, theirs].map(|state| state.keyed.key_form());
                if one != other {
                    let differ = MergeErrorKind::KeyForm {
                        ours: one,
                        theirs: other,
                    };
                    return Some(Err(differ.into()));
                }
                let ours = ours.keyed.downcast_ref::<Bloom>()?;
                Some(tell(ours, theirs.keyed.downcast_ref::<Bloom>()?))
            })
        });
        let cannot = || {
            let kinds = format!("a `{}` and a `{}`", self.kind.name, other.kind.name);
            errors::cannot(format!(
                "{kinds} do not tell their {what}; two of the kind `bloom` do"
            ))
        };
        told.ok_or_else(cannot)?.map_err(|e| errors::merge(&e))
    }
}

fn opening(verify: bool, secret: Option<&Bound<'_, PyAny>>) -> PyResult<(Open, Option<[u8; 16]>)> {
    let open = Open::new().verify(verify);
    match secret {
        None => Ok((open, None)),
        Some(_) => {
            let secrecy = Secrecy::of(secret, 0)?;
            if secrecy.secret.is_none() {
                let told = "a filter that exists has its secret; give that one";
                return Err(PyValueError::new_err(told));
            }
            Ok((open.hashing(secrecy.hashing), secrecy.secret))
        }
    }
}

/// The argument `key=`: a function, or nothing.
fn key_function(key: &Bound<'_, PyAny>) -> PyResult<Option<Py<PyAny>>> {
    match (key.is_none(), key.is_callable()) {
        (true, _) => Ok(None),
        (_, true) => Ok(Some(key.clone().unbind())),
        _ => Err(PyTypeError::new_err(
            "`key=` takes a function that makes a key of an object",
        )),
    }
}

fn name(kind: Option<&Bound<'_, PyAny>>) -> PyResult<String> {
    match kind {
        None => Ok(AUTO.into()),
        Some(kind) => match kind.cast::<PyString>() {
            Ok(name) => Ok(name.to_cow()?.into_owned()),
            Err(_) => Err(PyTypeError::new_err(
                "`kind` is the name of a kind; `tamis.kinds()` has them",
            )),
        },
    }
}

/// Makes of what a pickle holds the filter that it was made of.
#[pyfunction]
pub(crate) fn _restore<'py>(
    class: &Bound<'py, PyType>,
    bytes: PyBackedBytes,
    config: Option<String>,
    secret: Option<&Bound<'py, PyAny>>,
    key: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let (open, secret) = opening(true, secret)?;
    let mut filter = Filter::open_bytes(open, Arc::new(bytes), secret, key)?;
    let config = config.map(|config| config.parse::<Config>()).transpose();
    filter.config = config.map_err(|e| errors::build(&e))?;
    filter.wrap(class)
}

/// The library's own batch call, for `bench.py` to compare with: inserts an array of `int64`.
#[pyfunction]
pub(crate) fn _extend(filter: &Bound<'_, Filter>, keys: &Bound<'_, PyAny>) -> PyResult<()> {
    let array = Array::lent(keys)?;
    let wrong = || PyTypeError::new_err("an array of `int64` is wanted");
    let keys = array.whole::<i64>().ok_or_else(wrong)?;
    let put = filter.get().write(filter.py(), |keyed| keyed.extend(keys));
    put.map_err(|e| errors::full(&e, 0))
}
