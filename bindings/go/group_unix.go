//go:build unix

package kafkascope

import "syscall"

const gently = syscall.SIGTERM

var ownGroup = &syscall.SysProcAttr{Setpgid: true}
