# docker build -t factorykit . && docker run --rm factorykit plan llama3_70b --tokens 15T --chips h100_sxm
FROM python:3.13-slim AS build
COPY . /source
RUN pip wheel --no-cache-dir --wheel-dir /wheels '/source[mcp]'

FROM python:3.13-slim
RUN --mount=type=bind,from=build,source=/wheels,target=/wheels pip install --no-cache-dir --no-index /wheels/*.whl \
    && useradd --create-home --uid 1000 factorykit
USER 1000
WORKDIR /home/factorykit
ENTRYPOINT ["factorykit"]
CMD ["--help"]
