//! Boolean functions: given once, analysed as often as somebody asks.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pudica_boolean::analysis::{Analysis, Method, Request, Subject, analyse};
use pudica_boolean::files::{Table, table_of};
use pudica_boolean::npy::Type;
use pudica_boolean::restriction::Restriction;
use pudica_boolean::sampled::{Budget, Precision};
use pudica_boolean::{Convention, Function as AnyFunction, Given, MAX_TABLE_VARIABLES, RealFunction, Result, Spectrum};
use pyo3::prelude::*;

use crate::errors::value_error;
use crate::wait::wait_for;

/// A function of bits.
#[pyclass(frozen, module = "pudica._pudica")]
pub struct Function(Arc<Inner>);

struct Inner {
    name: String,
    n: usize,
    /// As it was written; nothing where only a table was given.
    given: Option<Given>,
    /// The truth table, once somebody wants it.
    table: OnceLock<Table>,
}

/// What is asked about a function.
struct Asked {
    measures: Option<Vec<String>>,
    fix: Option<String>,
    request: Request,
}

impl Inner {
    fn subject(&self) -> Result<Subject> {
        match (self.table.get(), &self.given) {
            (Some(table), _) => Ok(Subject::Table(table.clone())),
            (None, Some(given)) => match given.at(Some(self.n))? {
                // The table of a Boolean function is made once.
                Subject::Function(AnyFunction::Boolean(f)) if self.n <= MAX_TABLE_VARIABLES => {
                    let table = self.table.get_or_init({
                        let made = f.table()?;
                        || Table::Boolean(made)
                    });
                    Ok(Subject::Table(table.clone()))
                }
                subject => Ok(subject),
            },
            (None, None) => Err(pudica_boolean::Error::Parameter("there is no function".into())),
        }
    }

    fn analysis(&self, asked: Asked) -> Result<Analysis> {
        let Asked { measures, fix, mut request } = asked;
        let named = measures.map(|names| names.iter().map(|name| name.parse()).collect::<Result<Vec<_>>>());
        request.measures = named.transpose()?;
        request.name = self.name.clone();
        // A function that has no table, however it is written, can only be sampled.
        let mut subject = match request.method {
            Some(Method::Sampled) => {
                self.given.as_ref().map_or_else(|| self.subject(), |given| given.at(Some(self.n)))?
            }
            _ => self.subject()?,
        };
        if let Some(fixed) = fix {
            let restriction: Restriction = fixed.parse()?;
            request.names = Some(restriction.free(subject.variables())?);
            request.name += &format!(" with {fixed}");
            subject = restriction.of(subject)?;
        }
        analyse(subject, &request, &mut |_, _| ())
    }

    fn spectrum(&self, convention: Convention) -> Result<Vec<f64>> {
        let spectrum = match self.subject()? {
            Subject::Table(Table::Boolean(table)) => Spectrum::of(&table)?.in_convention(convention),
            Subject::Table(Table::Real(table)) => Spectrum::of_real(table)?,
            Subject::Function(AnyFunction::Real(f)) => Spectrum::of_real(real_table(f, convention)?)?,
            Subject::Function(AnyFunction::Boolean(f)) => Spectrum::of(&f.table()?)?.in_convention(convention),
        };
        Ok(spectrum.coefficients().collect())
    }
}

/// The values of a real function, which are on the scale from 0 to 1, in a convention.
fn real_table(f: Box<dyn RealFunction>, convention: Convention) -> Result<pudica_boolean::RealTable> {
    let n = f.variables();
    let value = move |x: &pudica_boolean::Bits| match convention {
        Convention::PlusMinus => 1.0 - 2.0 * f.value(x),
        _ => f.value(x),
    };
    pudica_boolean::RealTable::of(&pudica_boolean::function::real(n, value)?)
}

fn convention_named(name: &str) -> PyResult<Convention> {
    match name {
        "pm1" => Ok(Convention::PlusMinus),
        "01" => Ok(Convention::ZeroOne),
        _ => Err(value_error(format!("convention '{name}': give 'pm1' (values ±1) or '01'"))),
    }
}

#[pymethods]
impl Function {
    /// A name of the catalogue, `expr:...`, `table:FILE`.
    #[staticmethod]
    fn given(py: Python<'_>, text: String, n: Option<usize>) -> PyResult<Self> {
        let made = wait_for(py, move || -> Result<Inner> {
            let given: Given = text.parse()?;
            let subject = given.at(n)?;
            let n = subject.variables();
            let table = OnceLock::new();
            if let Subject::Table(found) = subject {
                let _ = table.set(found); // it was empty
            }
            let named = matches!(given, Given::Named(_));
            Ok(Inner { name: if named { given.to_string() } else { text }, n, given: Some(given), table })
        })?;
        Ok(Self(Arc::new(made.map_err(value_error)?)))
    }

    /// 2^n values of this type, as bytes; `name` is what it is called.
    #[staticmethod]
    fn table(py: Python<'_>, dtype: &str, bytes: PyReadonlyArray1<'_, u8>, name: String) -> PyResult<Self> {
        let Some(dtype) = Type::named(dtype) else {
            return Err(value_error(format!("a table of {dtype} is not read here: give bool, integers or floats")));
        };
        let bytes = bytes.as_slice().map_err(value_error)?;
        let table = py.detach(|| table_of(dtype, bytes, &name)).map_err(value_error)?;
        let n = table.variables();
        Ok(Self(Arc::new(Inner { name, n, given: None, table: OnceLock::from(table) })))
    }

    #[getter]
    fn name(&self) -> &str {
        &self.0.name
    }

    #[getter]
    fn n(&self) -> usize {
        self.0.n
    }

    /// Everything that is asked for, as JSON.
    #[pyo3(signature = (measures, convention, rho, top, p, method, precision, time_limit, seed, fix))]
    #[allow(clippy::too_many_arguments)] // they have names where it is called
    fn analyse(
        &self,
        py: Python<'_>,
        measures: Option<Vec<String>>,
        convention: &str,
        rho: Vec<f64>,
        top: usize,
        p: Option<f64>,
        method: Option<&str>,
        precision: Option<f64>,
        time_limit: f64,
        seed: u64,
        fix: Option<String>,
    ) -> PyResult<String> {
        let refuse = |problem: String| Err(value_error(problem));
        if let Some(rho) = rho.iter().find(|rho| !(-1.0..=1.0).contains(*rho)) {
            return refuse(format!("rho={rho} is no correlation: give a number from -1 to 1"));
        }
        if let Some(p) = p.filter(|p| !(0.0..=1.0).contains(p)) {
            return refuse(format!("p={p} is no probability: give a number from 0 to 1"));
        }
        if let Some(width) = precision.filter(|width| !(*width > 0.0 && width.is_finite())) {
            return refuse(format!("precision={width}: give a number more than 0"));
        }
        let Some(time_limit) = Duration::try_from_secs_f64(time_limit).ok().filter(|time| !time.is_zero()) else {
            return refuse(format!("time_limit={time_limit} is no number of seconds"));
        };
        let method = match (method, precision) {
            (Some("exact"), None) => Some(Method::Exact),
            (Some("exact"), Some(_)) => {
                return refuse("precision is for sampling: leave it out, or method='exact'".into());
            }
            (Some("sampled"), _) | (None, Some(_)) => Some(Method::Sampled),
            (None, None) => None,
            (Some(other), _) => return refuse(format!("method '{other}': give 'exact' or 'sampled'")),
        };
        let precision = precision.map_or(Precision::Relative(0.01), Precision::Absolute);
        let budget = Budget { precision, time_limit, seed };
        let convention = convention_named(convention)?;
        let request = Request { convention, method, rhos: rho, top, p, budget, ..Request::default() };
        let inner = self.0.clone();
        let found = wait_for(py, move || inner.analysis(Asked { measures, fix, request }))?.map_err(value_error)?;
        serde_json::to_string(&found).map_err(value_error)
    }

    /// All 2^n Fourier-Walsh coefficients; the bits of an index tell the set, x1 being the most significant.
    fn fourier<'py>(&self, py: Python<'py>, convention: &str) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let (inner, convention) = (self.0.clone(), convention_named(convention)?);
        let coefficients = wait_for(py, move || inner.spectrum(convention))?.map_err(value_error)?;
        Ok(coefficients.into_pyarray(py))
    }

    /// The truth table of a Boolean function, row by row; nothing for a real one.
    fn bits<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyArray1<bool>>>> {
        let inner = self.0.clone();
        let bits = wait_for(py, move || -> Result<Option<Vec<bool>>> {
            let Subject::Table(Table::Boolean(table)) = inner.subject()? else { return Ok(None) };
            Ok(Some((0..table.rows()).map(|row| table.get(row)).collect()))
        })?;
        Ok(bits.map_err(value_error)?.map(|bits| bits.into_pyarray(py)))
    }

    /// The values of a real function, row by row; nothing for a Boolean one.
    fn reals<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyArray1<f64>>>> {
        let inner = self.0.clone();
        let values = wait_for(py, move || -> Result<Option<Vec<f64>>> {
            Ok(match inner.subject()? {
                Subject::Table(Table::Real(table)) => Some(table.values().to_vec()),
                Subject::Function(AnyFunction::Real(f)) => Some(real_table(f, Convention::ZeroOne)?.values().to_vec()),
                _ => None,
            })
        })?;
        Ok(values.map_err(value_error)?.map(|values| values.into_pyarray(py)))
    }
}
