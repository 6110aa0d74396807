"""What the names that common packages define mean: functions, classes, methods, attributes.

This file holds facts only; it knows no syntax tree. A name that is not listed here means
nothing, so a program earns no milestone by calling a function of its own.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class Role(Enum):
    """What calling (or deriving from) a qualified name does."""

    LOAD = auto()
    PARSE = auto()
    READER = auto()
    CONSUME = auto()
    OPEN = auto()
    ARCHIVE = auto()
    FILE_PATH = auto()
    MODEL = auto()
    META_MODEL = auto()
    PIPELINE = auto()
    NETWORK = auto()
    SAVED_NETWORK = auto()
    LAYER = auto()
    TRANSFORMER = auto()
    SPLITTER = auto()
    SPLIT = auto()
    CROSS_SCORE = auto()
    CROSS_PREDICT = auto()
    TRAIN = auto()
    TRAINER = auto()
    LEARNER = auto()
    TABLE = auto()
    METRIC = auto()
    LOSS_FUNCTION = auto()
    LOSS = auto()
    NO_GRAD = auto()
    COPY = auto()
    STUDY = auto()
    DATASET = auto()
    RANDOM_SPLIT = auto()
    SUBSET = auto()
    SHUFFLED_ROWS = auto()
    SAVE = auto()
    LOAD_SAVED = auto()
    SOLVE = auto()
    PRODUCT = auto()
    RECORD = auto()
    CROSS_TRAIN = auto()
    REDUCE = auto()
    LENGTH = auto()
    ENUMERATE = auto()
    NEXT = auto()
    ZIP = auto()
    SAME = auto()


_TORCH_LOSSES = (
    "cross_entropy binary_cross_entropy binary_cross_entropy_with_logits nll_loss "
    "mse_loss l1_loss smooth_l1_loss huber_loss kl_div"
)
_STATSMODELS = (
    "OLS WLS GLS GLM Logit Probit MNLogit Poisson NegativeBinomial RLM QuantReg "
    "GLSAR MixedLM ols wls gls glm logit probit mnlogit poisson rlm quantreg "
    "mixedlm ARIMA SARIMAX AutoReg VAR ExponentialSmoothing SimpleExpSmoothing Holt "
    "UnobservedComponents"
)
_SKLEARN_MODELS = (
    "linear_model ensemble svm tree neighbors naive_bayes neural_network "
    "gaussian_process discriminant_analysis kernel_ridge dummy isotonic "
    "semi_supervised"
)
_SKLEARN_TRANSFORMERS = (
    "preprocessing feature_extraction decomposition impute compose feature_selection "
    "random_projection kernel_approximation manifold cluster"
)
_NAMES_BY_ROLE = {
    Role.LOAD: """
        ase.io.read cudf.read_csv cv2.imread dask.dataframe.read_csv dask.dataframe.read_parquet
        datasets.Dataset.from_csv datasets.load_dataset datatable.fread imageio.imread
        imageio.v2.imread json.load keras.preprocessing.image.image_dataset_from_directory
        keras.preprocessing.image.load_img keras.preprocessing.image_dataset_from_directory
        keras.preprocessing.load_img keras.utils.image_dataset_from_directory
        keras.utils.load_img librosa.load matplotlib.image.imread matplotlib.pyplot.imread
        modin.pandas.read_csv numpy.fromfile numpy.genfromtxt numpy.load numpy.loadtxt
        numpy.memmap PIL.Image.open pyarrow.csv.read_csv pyarrow.parquet.read_table
        pydicom.dcmread scipy.io.loadmat scipy.io.wavfile.read scipy.sparse.load_npz
        skimage.io.imread soundfile.read tensorflow.data.experimental.make_csv_dataset
        tensorflow.io.read_file torchvision.datasets.ImageFolder torchvision.io.read_image""",
    Role.PARSE: "json.loads",
    Role.READER: "csv.DictReader csv.reader",
    Role.CONSUME: "builtins.list builtins.sorted builtins.tuple",
    Role.OPEN: "builtins.open bz2.open codecs.open gzip.open io.open",
    Role.ARCHIVE: "tarfile.open zipfile.ZipFile",
    Role.FILE_PATH: "pathlib.Path",
    Role.MODEL: """
        autogluon.tabular.TabularPredictor interpret.glassbox.ExplainableBoostingClassifier
        interpret.glassbox.ExplainableBoostingRegressor ngboost.NGBClassifier
        ngboost.NGBRegressor prophet.Prophet pygam.LinearGAM pygam.LogisticGAM
        pytorch_tabnet.tab_model.TabNetClassifier pytorch_tabnet.tab_model.TabNetRegressor
        sentence_transformers.CrossEncoder sentence_transformers.SentenceTransformer
        sklearn.base.BaseEstimator sklearn.base.ClassifierMixin sklearn.base.RegressorMixin
        sklearn.cross_decomposition.PLSRegression skorch.NeuralNetClassifier
        skorch.NeuralNetRegressor tabpfn.TabPFNClassifier tabpfn.TabPFNRegressor""",
    Role.META_MODEL: """
        sklearn.calibration.CalibratedClassifierCV sklearn.compose.TransformedTargetRegressor""",
    Role.PIPELINE: """
        imblearn.pipeline.make_pipeline imblearn.pipeline.Pipeline
        sklearn.pipeline.make_pipeline sklearn.pipeline.Pipeline""",
    Role.NETWORK: """
        efficientnet_pytorch.EfficientNet.from_name
        efficientnet_pytorch.EfficientNet.from_pretrained keras.Model keras.models.Model
        keras.models.Sequential keras.Sequential lightning.LightningModule
        pytorch_lightning.LightningModule timm.create_model torch.hub.load torch.nn.Module
        torch.nn.Sequential transformers.pipeline""",
    Role.SAVED_NETWORK: "keras.models.load_model",
    Role.LAYER: "torch.nn.LazyLinear torch.nn.Linear",
    Role.TRANSFORMER: "sklearn.base.TransformerMixin",
    Role.SPLIT: "sklearn.model_selection.train_test_split",
    Role.CROSS_SCORE: "sklearn.model_selection.cross_val_score",
    Role.CROSS_PREDICT: "sklearn.model_selection.cross_val_predict",
    Role.TRAIN: "catboost.train fasttext.train_supervised lightgbm.train xgboost.train",
    Role.TRAINER: """
        lightning.Trainer pytorch_lightning.Trainer transformers.Seq2SeqTrainer
        transformers.Trainer trl.SFTTrainer""",
    Role.TABLE: "pandas.DataFrame",
    Role.METRIC: "numpy.corrcoef scipy.stats.kendalltau scipy.stats.pearsonr scipy.stats.spearmanr",
    Role.LOSS: """
        tensorflow.nn.sigmoid_cross_entropy_with_logits
        tensorflow.nn.softmax_cross_entropy_with_logits
        tensorflow.nn.sparse_softmax_cross_entropy_with_logits""",
    Role.NO_GRAD: "torch.inference_mode torch.no_grad",
    Role.COPY: """
        copy.copy copy.deepcopy keras.models.clone_model sklearn.base.clone torch.compile
        torch.nn.DataParallel""",
    Role.STUDY: "optuna.create_study optuna.study.create_study",
    Role.DATASET: """
        keras.utils.Sequence torch.utils.data.Dataset torch.utils.data.dataset.Dataset
        torch.utils.data.IterableDataset torch.utils.data.TensorDataset""",
    Role.RANDOM_SPLIT: "torch.utils.data.random_split",
    Role.SUBSET: "torch.utils.data.Subset",
    Role.SHUFFLED_ROWS: "numpy.random.permutation torch.randperm",
    Role.SAVE: "joblib.dump",
    Role.LOAD_SAVED: "joblib.load pickle.load",
    Role.SOLVE: """
        numpy.linalg.lstsq numpy.linalg.solve numpy.polyfit scipy.linalg.lstsq
        scipy.linalg.solve scipy.optimize.nnls""",
    Role.PRODUCT: "numpy.dot numpy.matmul numpy.polyval",
    Role.RECORD: "lightgbm.callback.record_evaluation lightgbm.record_evaluation",
    Role.CROSS_TRAIN: "catboost.cv lightgbm.cv sklearn.model_selection.cross_validate xgboost.cv",
    Role.REDUCE: "builtins.sum",
    Role.LENGTH: "builtins.len numpy.empty_like numpy.full_like numpy.ones_like numpy.zeros_like",
    Role.ENUMERATE: "builtins.enumerate",
    Role.NEXT: "builtins.next",
    Role.ZIP: "builtins.zip",
    Role.SAME: """
        builtins.iter builtins.reversed builtins.set functools.partial joblib.delayed
        tqdm.auto.tqdm tqdm.notebook.tqdm tqdm.tqdm tqdm.trange""",
}
_EXACT = {name: role for role, names in _NAMES_BY_ROLE.items() for name in names.split()}
_EXACT |= {f"torch.nn.functional.{name}": Role.LOSS for name in _TORCH_LOSSES.split()}
_EXACT |= {f"statsmodels.{name}": Role.MODEL for name in _STATSMODELS.split()}
_EXACT |= {
    f"{package}.{name}": Role.REDUCE
    for package in ("numpy", "torch", "tensorflow", "math")
    for name in ("mean", "sum", "sqrt", "average", "median", "nanmean")
}

_MODEL_MODULES = frozenset(f"sklearn.{name}" for name in _SKLEARN_MODELS.split())
_META_MODULES = frozenset({"sklearn.multiclass", "sklearn.multioutput"})
_META_NAMES = frozenset(
    f"sklearn.ensemble.{kind}{task}"
    for kind in ("Voting", "Stacking")
    for task in ("Classifier", "Regressor")
)
_TRANSFORMER_MODULES = (
    *(f"sklearn.{name}." for name in _SKLEARN_TRANSFORMERS.split()),
    "category_encoders.",
)
_NOT_ESTIMATORS = frozenset(
    f"sklearn.{name}"
    for name in [
        *("ensemble.RandomTreesEmbedding", "neural_network.BernoulliRBM", "neighbors.KDTree"),
        *("neighbors.BallTree", "neighbors.KNeighborsTransformer"),
        "neighbors.NeighborhoodComponentsAnalysis",
    ]
)
_MODEL_BEGINNINGS = (
    "lightgbm.LGBM",
    "xgboost.XGB",
    "catboost.CatBoost",
    "imblearn.ensemble.",
    "tensorflow_decision_forests.keras.",
)
_METRIC_ENDINGS = ("_score", "_loss", "_error", "_deviance")
_METRIC_NAMES = frozenset(
    {"auc", "matthews_corrcoef", "classification_report", "precision_recall_fscore_support"}
)
_NOT_NETWORKS = ("Tokenizer", "TokenizerFast", "Config", "Processor", "Extractor", "Arguments")
_KERAS_HOMES = ("tensorflow.keras.", "tensorflow.python.keras.", "tf_keras.")


def role_of(path: str) -> Role | None:
    """Return what a qualified name means, or nothing for a name that is not known."""
    path = _canonical(path)
    exact = _EXACT.get(path)
    if exact is not None:
        return exact
    rule = _RULES.get(path.partition(".")[0])
    if rule is not None:
        return rule(path)
    if path.startswith(_MODEL_BEGINNINGS):
        return Role.MODEL
    return Role.TRANSFORMER if path.startswith(_TRANSFORMER_MODULES) else None


def _canonical(path: str) -> str:
    for home in _KERAS_HOMES:
        if path.startswith(home):
            return "keras." + path.removeprefix(home)
    if path.startswith("statsmodels."):
        return "statsmodels." + path.rpartition(".")[2]
    return path


def _tables_role(path: str) -> Role | None:
    _, _, name = path.partition(".")
    return Role.LOAD if name.startswith(("read_", "scan_")) and "." not in name else None


def _sklearn_role(path: str) -> Role | None:
    module, _, name = path.rpartition(".")
    if module == "sklearn.metrics":
        metric = name.endswith(_METRIC_ENDINGS) or name in _METRIC_NAMES
        return Role.METRIC if metric else None
    if path.startswith(_TRANSFORMER_MODULES):
        return Role.TRANSFORMER
    if path in _NOT_ESTIMATORS or not name[:1].isupper():
        return None
    if module == "sklearn.model_selection":
        return _selection_role(name)
    if path in _META_NAMES or module in _META_MODULES:
        return Role.META_MODEL
    return Role.MODEL if module in _MODEL_MODULES else None


def _selection_role(name: str) -> Role | None:
    if name.endswith("SearchCV"):
        return Role.META_MODEL
    splits = name.endswith(("Fold", "Split", "Out"))
    return Role.SPLITTER if splits else None


def _network_role(path: str) -> Role | None:
    package, _, rest = path.partition(".")
    name = rest.rpartition(".")[2]
    if path.startswith("torch.nn.") and name.endswith("Loss"):
        return Role.LOSS_FUNCTION
    if path.startswith(("keras.losses.", "keras.metrics.")):
        return Role.LOSS_FUNCTION if name[:1].isupper() else Role.LOSS
    if package == "transformers" and name in ("from_pretrained", "from_config"):
        return None if rest.partition(".")[0].endswith(_NOT_NETWORKS) else Role.NETWORK
    zoo = path.startswith(("torchvision.models.", "keras.applications."))
    return Role.NETWORK if zoo and not name.endswith(("_Weights", "preprocess_input")) else None


def _fastai_role(path: str) -> Role | None:
    return Role.LEARNER if path.lower().endswith("learner") else None


_RULES: dict[str, Callable[[str], Role | None]] = {
    "pandas": _tables_role,
    "polars": _tables_role,
    "sklearn": _sklearn_role,
    "torch": _network_role,
    "torchvision": _network_role,
    "transformers": _network_role,
    "keras": _network_role,
    "fastai": _fastai_role,
}


PREDICT_METHODS = frozenset(
    {"predict", "predict_proba", "decision_function", "predict_log_proba", "forecast"}
    | {"predict_on_batch", "predict_generator", "get_preds"}
)
FIT_METHODS = frozenset(
    {"fit", "partial_fit", "fit_regularized", "fit_generator"}
    | {"fit_one_cycle", "fine_tune", "fit_predict"}
)
SCORE_METHODS = frozenset({"score", "evaluate", "evaluate_generator"})
BATCH_METHODS = frozenset({"train_on_batch", "test_on_batch"})
STEP_METHODS = frozenset({"apply_gradients", "minimize", "backward", "manual_backward"})
TRAINER_METHODS = frozenset({"evaluate", "validate", "test"})
RECORD_METHODS = frozenset({"evals_result", "get_evals_result"})
CALLBACK_METHODS = frozenset({"optimize", "apply", "progress_apply", "applymap"})
SHOW_METHODS = frozenset({"info", "debug", "warning", "write", "log", "append"})
ESTIMATOR_METHODS = FIT_METHODS | PREDICT_METHODS | SCORE_METHODS
READ_METHODS = frozenset({"read", "readline", "readlines"})
PATH_READ_METHODS = frozenset({"read_text", "read_bytes"})
REDUCE_METHODS = frozenset({"mean", "sum"})
STATISTICS = frozenset({"mean", "std", "var", "median", "min", "max", "quantile", "mode"})
SELF_METHODS = frozenset({"set_params", "to", "cuda", "cpu", "float", "double", "half", "eval"})
GROW_METHODS = frozenset({"append", "extend", "add", "insert", "update", "setdefault"})
JOIN_METHODS = frozenset({"append", "concat", "vstack"})
MODEL_ATTRIBUTES = frozenset({"best_estimator_", "estimators_", "named_steps", "module"})
HELDOUT_ATTRIBUTES = frozenset(
    {"best_score_", "oob_score_", "best_score", "cv_results_", "scores_", "mse_path_"}
    | {"validation_score_", "validation_scores_", "best_validation_score_", "cv_values_"}
)
TRAINING_ATTRIBUTES = frozenset(
    {"loss_", "best_loss_", "loss_curve_", "train_score_", "training_loss"}
    | {"mse_resid", "llf", "rsquared", "rsquared_adj", "prsquared", "ssr", "deviance"}
)
STUDY_ATTRIBUTES = frozenset({"best_value", "best_trial", "best_values"})
RECORD_ATTRIBUTES = frozenset({"history", "evals_result_"})
# A program that assigns one of these to a model makes the model its own, so it stops counting.
REPLACEABLE_MEMBERS = (
    ESTIMATOR_METHODS
    | RECORD_METHODS
    | TRAINER_METHODS
    | HELDOUT_ATTRIBUTES
    | TRAINING_ATTRIBUTES
    | STUDY_ATTRIBUTES
    | RECORD_ATTRIBUTES
)
PLAIN_ATTRIBUTES = frozenset({"shape", "columns", "dtypes", "size", "ndim"})
