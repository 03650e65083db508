# Airflow's image with this package, for each of its parts: API server, scheduler, DAG processor, triggerer, workers.
# Given, not tried on Airflow's own image: the tests build it on one of the same layout (tests/slow/test_airflow_image.py).
#   pip wheel --no-deps --wheel-dir build/image .
#   docker build -f docker/airflow.Dockerfile --build-arg AIRFLOW_IMAGE=apache/airflow:3.3.2 -t airflow-kstream build/image
ARG AIRFLOW_IMAGE

# gssapi and krb5 are compiled; the compiler stays in this stage.
FROM ${AIRFLOW_IMAGE} AS compiled
USER root
RUN apt-get update \
    && apt-get install -y --no-install-recommends gcc libc6-dev libkrb5-dev \
    && rm -rf /var/lib/apt/lists/*
# Airflow's image refuses pip to root.
USER airflow
RUN pip wheel --no-cache-dir --no-deps --constraint ~/constraints.txt --wheel-dir /tmp/wheels gssapi krb5

FROM ${AIRFLOW_IMAGE}
USER root
# For spark-submit. The client itself is your distribution's, added or mounted by you; or EXTRAS=[spark] brings PySpark 4.
ARG JAVA=default-jre-headless
RUN apt-get update \
    && apt-get install -y --no-install-recommends libgssapi-krb5-2 ${JAVA} \
    && rm -rf /var/lib/apt/lists/*
USER airflow
# This package's, such as [spark] or [kafka,triage].
ARG EXTRAS=""
# The base's constraints keep Airflow and its providers as they are. What is broken fails here.
RUN --mount=type=bind,target=/tmp/package --mount=type=bind,from=compiled,source=/tmp/wheels,target=/tmp/wheels \
    pip install --no-cache-dir --constraint ~/constraints.txt --find-links /tmp/wheels \
        "$(echo /tmp/package/airflow_kstream-*.whl)${EXTRAS}" \
    && python -c "import gssapi, krb5" \
    && kstream --version
