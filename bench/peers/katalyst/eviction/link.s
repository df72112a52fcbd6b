// Empty: lets manager.go declare a function without a body, which is linked by its name.
