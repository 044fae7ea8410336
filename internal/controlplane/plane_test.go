// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/olmcore/olm/internal/controlplane"
)

// TestMain stops at once, with the reason, when the binary was not built.
func TestMain(m *testing.M) {
	if _, err := controlplane.Binary(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if os.Getenv(panicking) != "" {
		startAndPanic()
	}
	code := m.Run()
	if flag.Lookup("test.run").Value.String() == "" {
		if unused := rightsUsed.unused(); len(unused) > 0 {
			fmt.Fprintf(os.Stderr, "FAIL: no test used these rights of the manager, and unusedRights does not say why:\n%s\n", strings.Join(unused, "\n"))
			code = max(code, 1)
		}
	}
	os.Exit(code)
}

// panicking makes this test binary start a control plane and panic.
const panicking = "OLMCORE_CONTROLPLANE_PANIC"

func startAndPanic() {
	plane, err := controlplane.Start(controlplane.Options{})
	if err != nil {
		panic(err)
	}
	pids, err := plane.Pids(context.Background())
	fmt.Println("pids", strings.Trim(fmt.Sprint(pids), "[]"), err)
	go panic("the control plane was not stopped")
	select {}
}

// A test that panics takes its control plane with it, though it cannot stop it.
func TestTheControlPlaneDiesWithTheTest(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), panicking+"=1", "TMPDIR="+t.TempDir()) // it cannot clean up
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	var pids []int
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if list, ok := strings.CutPrefix(lines.Text(), "pids "); ok {
			for _, word := range strings.Fields(list) {
				var pid int
				if n, _ := fmt.Sscan(word, &pid); n == 1 {
					pids = append(pids, pid)
				}
			}
		}
	}
	require.Error(t, cmd.Wait())
	require.Len(t, pids, 3, "etcd, kube-apiserver and kube-controller-manager ran")
	for _, pid := range pids {
		require.Eventually(t, func() bool { return syscall.Kill(pid, 0) != nil }, time.Minute, 100*time.Millisecond, "process %d lives on", pid)
	}
}

func TestStopLeavesNothingBehind(t *testing.T) {
	plane, err := controlplane.Start(controlplane.Options{})
	require.NoError(t, err)
	pids, err := plane.Pids(t.Context())
	require.NoError(t, err)
	require.Len(t, pids, 3)
	require.NoError(t, plane.Stop())
	for _, pid := range pids {
		require.Error(t, syscall.Kill(pid, 0), "process %d lives on", pid)
	}
	pids, err = plane.Pids(t.Context())
	require.NoError(t, err)
	require.Empty(t, pids)
}
