cases! {}
