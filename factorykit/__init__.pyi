# The public names, grouped by task. `factorykit/__init__.py` imports each on first use.

# errors
# explore
from factorykit import charts as charts

# compute
from factorykit import formulas as formulas
from factorykit import widgets as widgets
from factorykit.core import errors as errors
from factorykit.core.errors import FactorykitError as FactorykitError
from factorykit.core.errors import FactorykitWarning as FactorykitWarning

# data
from factorykit.core.vocabulary import quantities as quantities
from factorykit.core.vocabulary import quantity as quantity
from factorykit.data.identifiers import identify as identify
from factorykit.data.provenance import sources as sources
from factorykit.data.public.connectors import connect as connect
from factorykit.data.public.connectors import connectors as connectors
from factorykit.data.public.refresh import changes as changes
from factorykit.data.query import sql as sql
from factorykit.data.tables import table as table
from factorykit.data.tables import tables as tables
from factorykit.engine.evaluate import assumed as assumed
from factorykit.engine.evaluate import evaluate as evaluate
from factorykit.engine.evaluate import explain as explain
from factorykit.engine.evaluate import out_of_range as out_of_range

# plan
from factorykit.model.economics.decide import decide as decide
from factorykit.model.economics.rent import rent as rent
from factorykit.model.economics.trend import price_performance as price_performance
from factorykit.model.economics.trend import trend as trend
from factorykit.model.operations.schedule import Plant as Plant
from factorykit.model.operations.schedule import Policy as Policy
from factorykit.model.operations.schedule import schedule as schedule
from factorykit.model.operations.simulate import Cause as Cause
from factorykit.model.operations.simulate import Maintenance as Maintenance
from factorykit.model.operations.simulate import Tier as Tier
from factorykit.model.operations.simulate import simulate as simulate
from factorykit.model.operations.simulate import timeline as timeline
from factorykit.model.operations.workload import workload as workload
from factorykit.model.performance.calibration import Calibration as Calibration
from factorykit.model.performance.calibration import calibrate as calibrate
from factorykit.model.performance.hf_config import read_hf_config as read_hf_config
from factorykit.model.performance.search import search as search
from factorykit.model.planning.plan import Plan as Plan
from factorykit.model.planning.plan import plan as plan
from factorykit.model.reliability import checkpoint_patterns as checkpoint_patterns
from factorykit.model.reliability import fault_traces as fault_traces
from factorykit.model.reliability import lifetimes as lifetimes
from factorykit.model.reliability import reliability as reliability
from factorykit.model.reliability import replicas as replicas
from factorykit.model.scenario.accelerators import accelerator as accelerator
from factorykit.model.scenario.architectures import architecture as architecture
from factorykit.model.scenario.compare import attribute as attribute
from factorykit.model.scenario.compare import compare as compare
from factorykit.model.scenario.presets import preset as preset
from factorykit.model.scenario.presets import presets as presets
from factorykit.model.scenario.scenario import Scenario as Scenario
from factorykit.model.uncertainty.distributions import LogNormal as LogNormal
from factorykit.model.uncertainty.distributions import LogUniform as LogUniform
from factorykit.model.uncertainty.distributions import Normal as Normal
from factorykit.model.uncertainty.distributions import Quantiles as Quantiles
from factorykit.model.uncertainty.distributions import Triangular as Triangular
from factorykit.model.uncertainty.distributions import Uniform as Uniform
from factorykit.model.uncertainty.distributions import empirical as empirical
from factorykit.model.uncertainty.sample import bands as bands
from factorykit.model.uncertainty.sample import exceedance as exceedance
from factorykit.model.uncertainty.sample import sample as sample
from factorykit.model.uncertainty.sample import sensitivity as sensitivity
from factorykit.model.uncertainty.study.batch import batch as batch
from factorykit.model.uncertainty.study.study import study as study
from factorykit.model.uncertainty.sweep import sweep as sweep

# check
from factorykit.model.validation.audit import audit as audit
from factorykit.model.validation.energy import validate_energy as validate_energy
from factorykit.model.validation.published_practices import published_practices as published_practices
from factorykit.model.validation.recipe_check import check_recipe as check_recipe
from factorykit.model.validation.validate import validate as validate
from factorykit.model.validation.whole_runs import validate_runs as validate_runs

# operate
from factorykit.telemetry import fleet as fleet
from factorykit.telemetry.read import read_log as read_log
from factorykit.telemetry.tidy import Log as Log
from factorykit.widgets.explorer import explore as explore

__version__: str
__all__: list[str]
