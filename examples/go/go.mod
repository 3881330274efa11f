module examples

go 1.19

require rank v0.0.0

replace rank => ../../bindings/go
