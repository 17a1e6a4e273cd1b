# kafkascope for users: the command line, the terminal UI (also in a browser) and the proxy.
#
#   docker build -t kafkascope .
#   docker run --rm -it -v "$PWD:/captures" kafkascope check my.pcap
#   docker run --rm -it -v "$PWD:/captures" --user "$(id -u):$(id -g)" kafkascope cut my.pcap -Y error -o part.pcapng
#   docker run --rm -it --network host kafkascope proxy --upstream broker:9092
#
# Versions of dependencies are those that the tests run with. The image has no sources and no capture
# tools; a compiler only where the kernel is compiled. It was built nowhere yet, for want of a Docker
# daemon: what was run are its steps by hand. In a copy of the sources without what .dockerignore
# names: `python3.11 -m venv`, the pip lines, the first with no compiler there; then, with the copy gone, `--version`, `--help`, `demo --save`, `check`, `cut` and a
# proxy that starts and ends, as a user without rights, and `export` to Parquet.

FROM python:3.11-slim AS build
WORKDIR /src
COPY . .
RUN python -m venv /opt/kafkascope \
    && /opt/kafkascope/bin/pip install --no-cache-dir --disable-pip-version-check \
        --no-deps --requirement requirements/image.txt \
    && apt-get update && apt-get install --yes --no-install-recommends gcc libc6-dev \
    && sed -E '/--hash/d; s/ \\$//' requirements/py311.txt > /tmp/versions.txt \
    && KAFKASCOPE_COMPILE=1 PIP_CONSTRAINT=/tmp/versions.txt /opt/kafkascope/bin/pip install \
        --no-cache-dir --disable-pip-version-check --no-deps .

FROM python:3.11-slim
RUN useradd --create-home --uid 1000 kafkascope
COPY --from=build /opt/kafkascope /opt/kafkascope
ENV PATH="/opt/kafkascope/bin:$PATH" PYTHONUNBUFFERED=1
USER kafkascope
WORKDIR /captures
ENTRYPOINT ["kafkascope"]
CMD ["--help"]
