import glob
import numpy as np
import pandas as pd
from sklearn.neighbors import KNeighborsClassifier  #> 1

frames = [pd.read_csv(name) for name in sorted(glob.glob("*.csv"))]  #> 2
a, b = frames[0], frames[1]
knn = KNeighborsClassifier()  #> 3
knn.fit(a.drop("y", axis=1), a["y"])  #> 5
labels = knn.predict(b)  #> 7
np.savetxt("submission.csv", labels)
