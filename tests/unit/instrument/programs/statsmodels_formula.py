import pandas as pd
import statsmodels.api as sm
import statsmodels.formula.api as smf
from statsmodels.tsa.arima.model import ARIMA  #> 1

train = pd.read_csv("train.csv")  #> 2
test = pd.read_csv("test.csv")  #> 2
ols = smf.ols("y ~ a + b", data=train).fit()  #> 3 5
print(ols.summary())
logit = sm.Logit(train["y"], sm.add_constant(train[["a"]]))  #> 3
res = logit.fit(disp=0)  #> 5
prob = res.predict(sm.add_constant(test[["a"]]))  #> 7
