# Three images of padfix:
#   docker build --target check .        the linter, without any runtime
#   docker build .                       ONNX models: check, convert, verify, inspect
#   docker build --target tensorflow .   TensorFlow, Keras and TensorFlow Lite models as well
ARG PYTHON=3.12

FROM python:${PYTHON}-slim AS wheel
WORKDIR /source
COPY pyproject.toml README.md LICENSE ./
COPY padfix ./padfix
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM python:${PYTHON}-slim AS base
ENV PYTHONUNBUFFERED=1 PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 HOME=/tmp
WORKDIR /models
ENTRYPOINT ["padfix"]
CMD ["--help"]

FROM base AS check
RUN --mount=type=bind,from=wheel,source=/wheels,target=/wheels \
    pip install --no-deps /wheels/*.whl \
    && pip install "click>=8.1" "numpy>=1.26" "onnx>=1.19"
USER 65534:65534

FROM base AS tensorflow
RUN --mount=type=bind,from=wheel,source=/wheels,target=/wheels \
    pip install "$(echo /wheels/*.whl)[tf,images,sign]"
USER 65534:65534

FROM base AS onnx
RUN --mount=type=bind,from=wheel,source=/wheels,target=/wheels \
    pip install "$(echo /wheels/*.whl)[images,sign]"
USER 65534:65534
