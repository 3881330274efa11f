module rank

go 1.19
