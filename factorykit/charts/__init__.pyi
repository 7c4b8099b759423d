# The public names. `factorykit/charts/__init__.py` imports each on first use.

from factorykit.charts import audit as audit
from factorykit.charts import checkpoint as checkpoint
from factorykit.charts import compute as compute
from factorykit.charts import cost as cost
from factorykit.charts import diagnosis as diagnosis
from factorykit.charts import energy as energy
from factorykit.charts import fleet as fleet
from factorykit.charts import history as history
from factorykit.charts import loader as loader
from factorykit.charts import network as network
from factorykit.charts import operations as operations
from factorykit.charts import performance as performance
from factorykit.charts import plan as plan
from factorykit.charts import post_training as post_training
from factorykit.charts import reliability as reliability
from factorykit.charts import serving as serving
from factorykit.charts import sites as sites
from factorykit.charts import uncertainty as uncertainty
from factorykit.charts.bundle import page_script as page_script
from factorykit.charts.embed import mimebundle as mimebundle
from factorykit.charts.embed import svg as svg
from factorykit.charts.finish import finish as finish
from factorykit.charts.live import Case as Case
from factorykit.charts.live import Live as Live
from factorykit.charts.table import table as table
