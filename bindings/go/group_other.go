//go:build !unix

package kafkascope

import (
	"os"
	"syscall"
)

var gently = os.Interrupt

var ownGroup *syscall.SysProcAttr
