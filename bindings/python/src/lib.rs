//! The native half of the Python package `tamis`: everything that is fast, and everything that is
//! shared with the library. What Python says better is in `python/tamis`.

mod answers;
mod errors;
mod ffi;
mod filter;
mod iblt;
mod keys;
mod words;

use std::ffi::OsString;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use tamis::advise::{Needs, Prefer};
use tamis::{KINDS, Tier};

/// What is known of every kind, as dictionaries.
#[pyfunction]
fn _kinds(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    let list = PyList::empty(py);
    for info in KINDS {
        let kind = PyDict::new(py);
        kind.set_item("name", info.name)?;
        kind.set_item("id", info.id)?;
        kind.set_item("about", info.about)?;
        kind.set_item("family", info.family())?;
        kind.set_item("core", info.tier == Tier::Core)?;
        kind.set_item("copies", info.copies)?;
        let can = info.can.named().into_iter().filter(|(_, can)| *can);
        kind.set_item("can", can.map(|(name, _)| name).collect::<Vec<_>>())?;
        let params = PyDict::new(py);
        for param in info.params {
            let (values, default, about) = (param.values, param.default, param.about);
            params.set_item(param.name, format!("{about}: {values} (default {default})"))?;
        }
        kind.set_item("params", params)?;
        list.append(kind)?;
    }
    Ok(list)
}

/// Ranks the kinds for a need: choices, refusals and warnings.
#[pyfunction]
fn _advise<'py>(
    py: Python<'py>,
    keys: u64,
    fpr: f64,
    wishes: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyDict>> {
    let mut needs = Needs::new(keys, fpr);
    for (name, value) in wishes {
        match name.extract::<String>()?.as_str() {
            "fixed" => needs.fixed = value.extract()?,
            "remove" => needs.remove = value.extract()?,
            "copies" => needs.copies = value.extract()?,
            "merge" => needs.merge = value.extract()?,
            "halve" => needs.halve = value.extract()?,
            "map" => needs.map = value.extract()?,
            "grow" => needs.grow = value.extract()?,
            "window" => needs.window = value.extract()?,
            "most_bytes" => needs.most_bytes = value.extract()?,
            "hit_rate" => needs.hit_rate = value.extract()?,
            "miss_cost" => needs.miss_cost = value.extract()?,
            "key_bytes" => needs.key_bytes = value.extract()?,
            "all" => needs.all = value.extract()?,
            "prefer" => {
                needs.prefer = match value.extract::<String>()?.as_str() {
                    "balance" => Prefer::Balance,
                    "space" => Prefer::Space,
                    "speed" => Prefer::Speed,
                    other => {
                        let told = format!("prefer balance, space or speed, not `{other}`");
                        return Err(PyValueError::new_err(told));
                    }
                }
            }
            other => {
                return Err(PyValueError::new_err(format!(
                    "nobody knows the wish `{other}`"
                )));
            }
        }
    }
    let advice = py.detach(|| tamis::advise::advise(&needs));
    let advice = advice.map_err(|e| errors::build(&e))?;
    let told = PyDict::new(py);
    let choices = PyList::empty(py);
    for choice in &advice.choices {
        let chosen = PyDict::new(py);
        chosen.set_item("kind", choice.kind.name)?;
        chosen.set_item("config", choice.config.to_string())?;
        chosen.set_item("nbytes", choice.bytes)?;
        chosen.set_item("bits_per_key", choice.bits_per_key)?;
        chosen.set_item("fpr", choice.fpr)?;
        chosen.set_item("why", &choice.why)?;
        choices.append(chosen)?;
    }
    told.set_item("choices", choices)?;
    let refused = advice
        .refused
        .iter()
        .map(|refused| (refused.kind.name, &refused.why));
    told.set_item("refused", refused.collect::<Vec<_>>())?;
    let warnings = advice.warnings.iter().map(ToString::to_string);
    told.set_item("warnings", warnings.collect::<Vec<_>>())?;
    Ok(told)
}

/// Runs the program `tamis` with these arguments, and gives its exit code.
#[pyfunction]
fn _main(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    py.detach(|| tamis_cli::main(arguments).0)
}

#[pymodule]
mod _tamis {
    #[pymodule_export]
    use super::{_advise, _kinds, _main};
    #[pymodule_export]
    use crate::answers::AnswerColumn;
    #[pymodule_export]
    use crate::filter::{_extend, _restore, Filter, Ready};
    #[pymodule_export]
    use crate::iblt::Iblt;
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        let py = module.py();
        if py.version_info() >= (3, 12) {
            // Assigned, as it is then that Python takes it for its protocol.
            let filter = py.get_type::<Filter>();
            filter.setattr("__buffer__", filter.getattr("_buffer")?)?;
        }
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
