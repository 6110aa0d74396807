"""What the qualified names of the usual packages mean to the static finder.

A table of facts and nothing else: it knows no syntax tree. A name that is not here means
nothing, so that a program earns no milestone for calling something of its own making.
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
    EXHAUST = auto()
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
    OPTIMIZER = auto()
    NO_GRAD = auto()
    COPY = auto()
    STUDY = auto()
    DATASET = auto()
    RANDOM_SPLIT = auto()
    SUBSET = auto()
    SHUFFLED_ROWS = auto()
    PUT_AWAY = auto()
    TAKE_BACK = auto()
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
_EXACT: dict[str, Role] = {
    "json.load": Role.LOAD,
    "json.loads": Role.PARSE,
    "pandas.DataFrame": Role.TABLE,
    "csv.reader": Role.READER,
    "csv.DictReader": Role.READER,
    "PIL.Image.open": Role.LOAD,
    "cv2.imread": Role.LOAD,
    "imageio.imread": Role.LOAD,
    "skimage.io.imread": Role.LOAD,
    "matplotlib.image.imread": Role.LOAD,
    "matplotlib.pyplot.imread": Role.LOAD,
    "torchvision.io.read_image": Role.LOAD,
    "torchvision.datasets.ImageFolder": Role.LOAD,
    "librosa.load": Role.LOAD,
    "soundfile.read": Role.LOAD,
    "pydicom.dcmread": Role.LOAD,
    "scipy.io.loadmat": Role.LOAD,
    "scipy.io.wavfile.read": Role.LOAD,
    "builtins.open": Role.OPEN,
    "io.open": Role.OPEN,
    "gzip.open": Role.OPEN,
    "bz2.open": Role.OPEN,
    "codecs.open": Role.OPEN,
    "zipfile.ZipFile": Role.ARCHIVE,
    "tarfile.open": Role.ARCHIVE,
    "pathlib.Path": Role.FILE_PATH,
    "sklearn.pipeline.Pipeline": Role.PIPELINE,
    "sklearn.pipeline.make_pipeline": Role.PIPELINE,
    "imblearn.pipeline.Pipeline": Role.PIPELINE,
    "imblearn.pipeline.make_pipeline": Role.PIPELINE,
    "sklearn.model_selection.train_test_split": Role.SPLIT,
    "sklearn.model_selection.cross_val_score": Role.CROSS_SCORE,
    "sklearn.model_selection.cross_validate": Role.CROSS_TRAIN,
    "torch.utils.data.Dataset": Role.DATASET,
    "torch.utils.data.IterableDataset": Role.DATASET,
    "torch.utils.data.dataset.Dataset": Role.DATASET,
    "torch.utils.data.TensorDataset": Role.DATASET,
    "keras.utils.Sequence": Role.DATASET,
    "torch.utils.data.random_split": Role.RANDOM_SPLIT,
    "torch.utils.data.Subset": Role.SUBSET,
    "optuna.create_study": Role.STUDY,
    "optuna.study.create_study": Role.STUDY,
    "lightgbm.record_evaluation": Role.RECORD,
    "lightgbm.callback.record_evaluation": Role.RECORD,
    "numpy.linalg.lstsq": Role.SOLVE,
    "numpy.linalg.solve": Role.SOLVE,
    "scipy.linalg.lstsq": Role.SOLVE,
    "scipy.linalg.solve": Role.SOLVE,
    "scipy.optimize.nnls": Role.SOLVE,
    "numpy.polyfit": Role.SOLVE,
    "numpy.dot": Role.PRODUCT,
    "numpy.matmul": Role.PRODUCT,
    "numpy.polyval": Role.PRODUCT,
    "numpy.corrcoef": Role.METRIC,
    "scipy.stats.pearsonr": Role.METRIC,
    "scipy.stats.spearmanr": Role.METRIC,
    "scipy.stats.kendalltau": Role.METRIC,
    "functools.partial": Role.SAME,
    "joblib.delayed": Role.SAME,
    "builtins.set": Role.SAME,
    "tqdm.trange": Role.SAME,
    "sklearn.model_selection.cross_val_predict": Role.CROSS_PREDICT,
    "sklearn.compose.TransformedTargetRegressor": Role.META_MODEL,
    "sklearn.calibration.CalibratedClassifierCV": Role.META_MODEL,
    "sklearn.cross_decomposition.PLSRegression": Role.MODEL,
    "sklearn.base.ClassifierMixin": Role.MODEL,
    "sklearn.base.RegressorMixin": Role.MODEL,
    "sklearn.base.BaseEstimator": Role.MODEL,
    "sklearn.base.TransformerMixin": Role.TRANSFORMER,
    "sklearn.base.clone": Role.COPY,
    "copy.copy": Role.COPY,
    "copy.deepcopy": Role.COPY,
    "torch.nn.DataParallel": Role.COPY,
    "torch.compile": Role.COPY,
    "lightgbm.train": Role.TRAIN,
    "xgboost.train": Role.TRAIN,
    "catboost.train": Role.TRAIN,
    "lightgbm.cv": Role.CROSS_TRAIN,
    "xgboost.cv": Role.CROSS_TRAIN,
    "catboost.cv": Role.CROSS_TRAIN,
    "transformers.Trainer": Role.TRAINER,
    "transformers.Seq2SeqTrainer": Role.TRAINER,
    "trl.SFTTrainer": Role.TRAINER,
    "pytorch_tabnet.tab_model.TabNetClassifier": Role.MODEL,
    "pytorch_tabnet.tab_model.TabNetRegressor": Role.MODEL,
    "ngboost.NGBClassifier": Role.MODEL,
    "ngboost.NGBRegressor": Role.MODEL,
    "tabpfn.TabPFNClassifier": Role.MODEL,
    "tabpfn.TabPFNRegressor": Role.MODEL,
    "pygam.LogisticGAM": Role.MODEL,
    "pygam.LinearGAM": Role.MODEL,
    "autogluon.tabular.TabularPredictor": Role.MODEL,
    "efficientnet_pytorch.EfficientNet.from_pretrained": Role.NETWORK,
    "efficientnet_pytorch.EfficientNet.from_name": Role.NETWORK,
    "torch.hub.load": Role.NETWORK,
    "transformers.pipeline": Role.NETWORK,
    "sentence_transformers.CrossEncoder": Role.MODEL,
    "sentence_transformers.SentenceTransformer": Role.MODEL,
    "skorch.NeuralNetClassifier": Role.MODEL,
    "skorch.NeuralNetRegressor": Role.MODEL,
    "interpret.glassbox.ExplainableBoostingClassifier": Role.MODEL,
    "interpret.glassbox.ExplainableBoostingRegressor": Role.MODEL,
    "fasttext.train_supervised": Role.TRAIN,
    "joblib.dump": Role.PUT_AWAY,
    "joblib.load": Role.TAKE_BACK,
    "pickle.load": Role.TAKE_BACK,
    "numpy.random.permutation": Role.SHUFFLED_ROWS,
    "torch.randperm": Role.SHUFFLED_ROWS,
    "keras.models.load_model": Role.SAVED_NETWORK,
    "datasets.load_dataset": Role.LOAD,
    "datasets.Dataset.from_csv": Role.LOAD,
    "datatable.fread": Role.LOAD,
    "dask.dataframe.read_csv": Role.LOAD,
    "dask.dataframe.read_parquet": Role.LOAD,
    "cudf.read_csv": Role.LOAD,
    "modin.pandas.read_csv": Role.LOAD,
    "pyarrow.csv.read_csv": Role.LOAD,
    "pyarrow.parquet.read_table": Role.LOAD,
    "scipy.sparse.load_npz": Role.LOAD,
    "imageio.v2.imread": Role.LOAD,
    "tensorflow.io.read_file": Role.LOAD,
    "tensorflow.data.experimental.make_csv_dataset": Role.LOAD,
    "ase.io.read": Role.LOAD,
    "lightning.Trainer": Role.TRAINER,
    "pytorch_lightning.Trainer": Role.TRAINER,
    "torch.nn.Module": Role.NETWORK,
    "torch.nn.Sequential": Role.NETWORK,
    "torch.nn.Linear": Role.LAYER,
    "torch.nn.LazyLinear": Role.LAYER,
    "lightning.LightningModule": Role.NETWORK,
    "pytorch_lightning.LightningModule": Role.NETWORK,
    "timm.create_model": Role.NETWORK,
    "keras.Sequential": Role.NETWORK,
    "keras.Model": Role.NETWORK,
    "keras.models.Sequential": Role.NETWORK,
    "keras.models.Model": Role.NETWORK,
    "keras.models.clone_model": Role.COPY,
    "torch.no_grad": Role.NO_GRAD,
    "torch.inference_mode": Role.NO_GRAD,
    "prophet.Prophet": Role.MODEL,
    "builtins.len": Role.LENGTH,
    "builtins.enumerate": Role.ENUMERATE,
    "builtins.next": Role.NEXT,
    "builtins.zip": Role.ZIP,
    "builtins.list": Role.EXHAUST,
    "builtins.tuple": Role.EXHAUST,
    "builtins.sorted": Role.EXHAUST,
    "builtins.reversed": Role.SAME,
    "builtins.iter": Role.SAME,
    "tqdm.tqdm": Role.SAME,
    "tqdm.auto.tqdm": Role.SAME,
    "tqdm.notebook.tqdm": Role.SAME,
    "builtins.sum": Role.REDUCE,
}
_EXACT |= {
    f"numpy.{name}": Role.LOAD for name in ("load", "loadtxt", "genfromtxt", "fromfile", "memmap")
}
_EXACT |= {f"numpy.{name}_like": Role.LENGTH for name in ("zeros", "ones", "empty", "full")}
_EXACT |= {
    f"{package}.{name}": Role.REDUCE
    for package in ("numpy", "torch", "tensorflow", "math")
    for name in ("mean", "sum", "sqrt", "average", "median", "nanmean")
}
_EXACT |= {
    f"keras.{place}.{name}": Role.LOAD
    for place in ("utils", "preprocessing", "preprocessing.image")
    for name in ("image_dataset_from_directory", "load_img")
}
_EXACT |= {f"torch.nn.functional.{name}": Role.LOSS for name in _TORCH_LOSSES.split()}
_EXACT |= {
    f"tensorflow.nn.{name}": Role.LOSS
    for name in [
        "sigmoid_cross_entropy_with_logits",
        "softmax_cross_entropy_with_logits",
        "sparse_softmax_cross_entropy_with_logits",
    ]
}
_EXACT |= {f"statsmodels.{name}": Role.MODEL for name in _STATSMODELS.split()}

_MODEL_MODULES = frozenset(f"sklearn.{name}" for name in _SKLEARN_MODELS.split())
_META_MODULES = frozenset({"sklearn.multiclass", "sklearn.multioutput"})
_META_NAMES = frozenset(
    f"sklearn.ensemble.{kind}{task}"
    for kind in ("Voting", "Stacking")
    for task in ("Classifier", "Regressor")
)
_TRANSFORMER_MODULES = (
    "sklearn.preprocessing.",
    "sklearn.feature_extraction.",
    "sklearn.decomposition.",
    "sklearn.impute.",
    "sklearn.compose.",
    "sklearn.feature_selection.",
    "sklearn.random_projection.",
    "sklearn.kernel_approximation.",
    "sklearn.manifold.",
    "sklearn.cluster.",
    "category_encoders.",
)
_NOT_ESTIMATORS = frozenset(
    {
        "sklearn.ensemble.RandomTreesEmbedding",
        "sklearn.neighbors.KDTree",
        "sklearn.neighbors.BallTree",
        "sklearn.neighbors.KNeighborsTransformer",
        "sklearn.neighbors.NeighborhoodComponentsAnalysis",
        "sklearn.neural_network.BernoulliRBM",
    }
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
    if path.startswith("torch.optim.") and name[:1].isupper() and "lr_scheduler" not in path:
        return Role.OPTIMIZER
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
