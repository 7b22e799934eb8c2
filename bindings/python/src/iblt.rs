//! `tamis.Iblt`: the difference of two sets, found from a table as small as the difference.

use std::sync::{PoisonError, RwLock};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyType};
use tamis::{Difference, Lookup};

use crate::errors;
use crate::filter::file_bytes;
use crate::words;

/// A table of whole numbers below 2**64 that can be subtracted from another, and then lists what
/// only one of the two sets has.
///
/// >>> import tamis
/// >>> here, there = tamis.Iblt(10), tamis.Iblt(10)
/// >>> here.update(range(1000))
/// >>> there.update(range(3, 1003))
/// >>> ours, theirs = (here - there).list()
/// >>> sorted(ours), sorted(theirs)
/// ([0, 1, 2], [1000, 1001, 1002])
#[pyclass(frozen, module = "tamis")]
pub(crate) struct Iblt(RwLock<tamis::Iblt>);

type Pairs = Vec<(u64, u64)>;

impl Iblt {
    fn of(table: tamis::Iblt) -> Iblt {
        Iblt(RwLock::new(table))
    }

    /// Looks at the table; nobody holds the lock while Python code runs.
    fn read<T: Send>(&self, py: Python<'_>, read: impl FnOnce(&tamis::Iblt) -> T + Send) -> T {
        py.detach(|| read(&self.0.read().unwrap_or_else(PoisonError::into_inner)))
    }

    fn write<T: Send>(
        &self,
        py: Python<'_>,
        write: impl FnOnce(&mut tamis::Iblt) -> T + Send,
    ) -> T {
        py.detach(|| write(&mut self.0.write().unwrap_or_else(PoisonError::into_inner)))
    }

    fn table(&self, py: Python<'_>) -> tamis::Iblt {
        self.read(py, Clone::clone)
    }
}

#[pymethods]
impl Iblt {
    /// A table from which up to so many differences are listed with a probability of 99.9 %.
    #[new]
    #[pyo3(signature = (differences, *, values = false))]
    fn new(py: Python<'_>, differences: u64, values: bool) -> PyResult<Iblt> {
        let table = py.detach(|| {
            let table = tamis::Iblt::new(differences)?;
            if values {
                table.with_values()
            } else {
                Ok(table)
            }
        });
        Ok(Iblt::of(table.map_err(|e| errors::build(&e))?))
    }

    /// Puts a key in, with a value if the table has them. It must not be in already.
    #[pyo3(signature = (key, value = 0))]
    fn insert(&self, py: Python<'_>, key: u64, value: u64) -> PyResult<()> {
        let put = self.write(py, |table| table.insert_pair(key, value));
        put.map_err(|e| PyValueError::new_err(e.to_string()))
    }

    /// Takes a key out with its value, or notes that it is missing here.
    #[pyo3(signature = (key, value = 0))]
    fn delete(&self, py: Python<'_>, key: u64, value: u64) -> PyResult<()> {
        let taken = self.write(py, |table| table.delete_pair(key, value));
        taken.map_err(|e| PyValueError::new_err(e.to_string()))
    }

    /// Puts many keys in.
    fn update(&self, keys: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = keys.py();
        let (keys, _) = words::of(keys)?;
        self.write(py, |table| keys.iter().for_each(|&key| table.insert(key)));
        Ok(())
    }

    /// What is known of a key: "inserted" or "deleted" with its value, "absent", or "unknown" where
    /// its cells do not tell.
    fn get(&self, py: Python<'_>, key: u64) -> (&'static str, Option<u64>) {
        match self.read(py, |table| table.get(key)) {
            Lookup::Absent => ("absent", None),
            Lookup::Inserted(value) => ("inserted", Some(value)),
            Lookup::Deleted(value) => ("deleted", Some(value)),
            Lookup::Unknown => ("unknown", None),
        }
    }

    fn __sub__(&self, py: Python<'_>, other: &Bound<'_, Iblt>) -> PyResult<Iblt> {
        let (mut table, other) = (self.table(py), other.get().table(py));
        py.detach(|| table.subtract(&other))
            .map_err(|e| errors::merge(&e))?;
        Ok(Iblt::of(table))
    }

    fn __or__(&self, py: Python<'_>, other: &Bound<'_, Iblt>) -> PyResult<Iblt> {
        let (mut table, other) = (self.table(py), other.get().table(py));
        py.detach(|| table.merge(&other))
            .map_err(|e| errors::merge(&e))?;
        Ok(Iblt::of(table))
    }

    /// The keys that were inserted, and those that are only in the table that was subtracted.
    /// `ValueError` where the table is too small to tell them apart.
    fn list(&self, py: Python<'_>) -> PyResult<(Vec<u64>, Vec<u64>)> {
        match self.read(py, tamis::Iblt::list) {
            Ok(Difference { inserted, deleted }) => Ok((inserted, deleted)),
            Err(e) => Err(PyValueError::new_err(e.to_string())),
        }
    }

    /// As `list`, each key with its value.
    fn list_pairs(&self, py: Python<'_>) -> PyResult<(Pairs, Pairs)> {
        match self.read(py, tamis::Iblt::list_pairs) {
            Ok(Difference { inserted, deleted }) => Ok((inserted, deleted)),
            Err(e) => Err(PyValueError::new_err(e.to_string())),
        }
    }

    /// How many cells there are.
    #[getter]
    fn cells(&self, py: Python<'_>) -> u64 {
        self.read(py, tamis::Iblt::cells)
    }

    /// Every byte that it holds in memory.
    #[getter]
    fn nbytes(&self, py: Python<'_>) -> usize {
        self.read(py, tamis::Iblt::size_in_bytes)
    }

    fn __bool__(&self, py: Python<'_>) -> bool {
        !self.read(py, tamis::Iblt::is_empty)
    }

    /// Another table of the same content.
    fn copy(&self, py: Python<'_>) -> Iblt {
        Iblt::of(self.table(py))
    }

    /// The table as bytes, to be sent.
    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.read(py, tamis::Iblt::to_bytes))
    }

    /// The table of these bytes.
    #[classmethod]
    fn from_bytes(cls: &Bound<'_, PyType>, data: &Bound<'_, PyAny>) -> PyResult<Iblt> {
        let bytes = file_bytes(data)?;
        let table = cls.py().detach(|| tamis::Iblt::from_bytes(&bytes));
        Ok(Iblt::of(table.map_err(|e| errors::decode(&e))?))
    }

    fn __eq__<'py>(
        &self,
        py: Python<'py>,
        other: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let Ok(other) = other.cast::<Iblt>() else {
            return Ok(py.NotImplemented().into_bound(py));
        };
        let equal =
            self.read(py, tamis::Iblt::to_bytes) == other.get().read(py, tamis::Iblt::to_bytes);
        Ok(equal.into_pyobject(py)?.to_owned().into_any())
    }

    fn __reduce__<'py>(slf: &Bound<'py, Iblt>) -> PyResult<Bound<'py, PyAny>> {
        let from = slf.get_type().getattr("from_bytes")?;
        let bytes = slf.get().to_bytes(slf.py());
        Ok((from, (bytes,)).into_pyobject(slf.py())?.into_any())
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let (cells, bytes) = self.read(py, |table| (table.cells(), table.size_in_bytes()));
        format!("<tamis.Iblt: {cells} cells, {bytes} bytes>")
    }
}
