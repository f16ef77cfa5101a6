# odkanon without anything else: a wheel built in one stage, installed in the other, run by a user without rights.
FROM python:3.12-slim AS build
WORKDIR /source
COPY . .
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM python:3.12-slim
COPY --from=build /wheels /wheels
RUN pip install --no-cache-dir "$(ls /wheels/*.whl)[geo,omx,plot]" && rm -r /wheels \
    && useradd --create-home --uid 10001 odkanon
USER odkanon
WORKDIR /data
ENTRYPOINT ["odkanon"]
CMD ["--help"]
