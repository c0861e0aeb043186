# An image that holds only the files of the extension, for servers of PostgreSQL 18 and later that mount it:
#   docker build --build-arg MAJOR=18 --build-arg SUITE=trixie -t bloomfilter:18 .
# Major, suite and architecture must be those of the server's image. CONTRIBUTING.md says what the server sets.
ARG MAJOR=18
ARG SUITE=trixie
FROM postgres:${MAJOR}-${SUITE} AS build
ARG MAJOR
RUN apt-get update && apt-get install -y --no-install-recommends \
    make gcc libc6-dev libxxhash-dev postgresql-server-dev-${MAJOR}
COPY . /src
WORKDIR /src
RUN make -j4 with_llvm=no && make with_llvm=no pkglibdir=/image/lib datadir=/image/share install && \
    install -D -m 644 LICENSE /image/licenses/bloomfilter

FROM scratch
COPY --from=build /image/ /
