"""Names that programs use without importing them, and what they mean by them.

A statement that uses such a name fails, so a marker after it is never reached; it is placed all
the same, because a person would place it there. This holds only while nothing in the program can
make the name exist: one that it binds anywhere, or any means of binding names by text, and the
name means nothing.
"""

from __future__ import annotations

import ast

_SKLEARN = {
    "linear_model": "LogisticRegression LinearRegression Ridge Lasso ElasticNet SGDClassifier "
    "RidgeClassifier SGDRegressor",
    "ensemble": "RandomForestClassifier RandomForestRegressor GradientBoostingClassifier "
    "GradientBoostingRegressor ExtraTreesClassifier ExtraTreesRegressor AdaBoostClassifier "
    "HistGradientBoostingClassifier HistGradientBoostingRegressor VotingClassifier "
    "StackingClassifier",
    "svm": "SVC SVR LinearSVC",
    "tree": "DecisionTreeClassifier DecisionTreeRegressor",
    "neighbors": "KNeighborsClassifier KNeighborsRegressor",
    "naive_bayes": "MultinomialNB GaussianNB BernoulliNB",
    "neural_network": "MLPClassifier MLPRegressor",
    "pipeline": "Pipeline make_pipeline FeatureUnion",
    "compose": "ColumnTransformer",
    "impute": "SimpleImputer",
    "preprocessing": "StandardScaler MinMaxScaler LabelEncoder OneHotEncoder OrdinalEncoder",
    "feature_extraction.text": "TfidfVectorizer CountVectorizer HashingVectorizer",
    "decomposition": "PCA TruncatedSVD",
    "model_selection": "train_test_split cross_val_score cross_validate cross_val_predict KFold "
    "StratifiedKFold GroupKFold GridSearchCV RandomizedSearchCV",
    "metrics": "accuracy_score log_loss roc_auc_score mean_squared_error mean_absolute_error "
    "f1_score cohen_kappa_score mean_squared_log_error r2_score classification_report",
}
_USUAL = {
    "pd": "pandas",
    "np": "numpy",
    "pl": "polars",
    "lgb": "lightgbm",
    "xgb": "xgboost",
    "torch": "torch",
    "nn": "torch.nn",
    "optim": "torch.optim",
    "F": "torch.nn.functional",
    "tf": "tensorflow",
    "keras": "keras",
    "sm": "statsmodels.api",
    "smf": "statsmodels.formula.api",
    "json": "json",
    "csv": "csv",
    "cv2": "cv2",
    "Image": "PIL.Image",
    "LGBMClassifier": "lightgbm.LGBMClassifier",
    "LGBMRegressor": "lightgbm.LGBMRegressor",
    "XGBClassifier": "xgboost.XGBClassifier",
    "XGBRegressor": "xgboost.XGBRegressor",
    "CatBoostClassifier": "catboost.CatBoostClassifier",
    "CatBoostRegressor": "catboost.CatBoostRegressor",
    **{
        name: f"sklearn.{module}.{name}"
        for module, names in _SKLEARN.items()
        for name in names.split()
    },
}
_TEXTUAL = frozenset(
    {"globals", "locals", "vars", "exec", "setattr", "compile", "modules", "_getframe"}
    | {"builtins", "__builtins__", "__import__", "__dict__", "importlib", "inspect", "__main__"}
    | {"f_globals", "f_builtins", "__globals__", "gc", "ctypes", "runpy", "__self__", "__setattr__"}
)


def forgotten_names(tree: ast.Module) -> dict[str, str]:
    """Return the usual meaning of the names that a program uses and cannot have."""
    used: set[str] = set()
    bound: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            (used if isinstance(node.ctx, ast.Load) else bound).add(node.id)
        elif isinstance(node, ast.Attribute):
            if node.attr in _TEXTUAL:
                return {}
            if isinstance(node.ctx, ast.Store):
                bound.add(node.attr)
        elif isinstance(node, ast.alias):
            if node.name == "*":
                return {}
            bound |= {(node.asname or node.name).partition(".")[0], node.name}
        else:
            bound |= _names_of(node)
    if (used | bound) & (_TEXTUAL | {"eval", "getattr"}):
        return {}
    return {name: _USUAL[name] for name in used - bound if name in _USUAL}


def _names_of(node: ast.AST) -> set[str]:
    if isinstance(node, ast.Global | ast.Nonlocal):
        return set(node.names)
    names = (getattr(node, field, None) for field in ("name", "arg", "rest"))
    return {name for name in names if isinstance(name, str)}
