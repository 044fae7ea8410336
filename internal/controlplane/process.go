// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// process is a child that serves /healthz.
type process struct {
	name string
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
	log  *os.File
}

// startProcess starts a child on a free loopback port and waits until it is healthy.
func startProcess(path, logPath string, args func(port int) []string) (*process, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	log, err := os.Create(logPath)
	if err != nil {
		return nil, err
	}
	p := &process{name: filepath.Base(path), cmd: exec.Command(path, args(port)...), done: make(chan struct{}), log: log}
	p.cmd.Stdout, p.cmd.Stderr = log, log
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() { _ = p.cmd.Wait(); close(p.done) }()
	if err := p.healthy(fmt.Sprintf("https://127.0.0.1:%d/healthz", port)); err != nil {
		_ = p.stop()
		return nil, err
	}
	return p, nil
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

func (p *process) healthy(url string) error {
	client := http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, // its own certificate, on loopback
	}}
	defer client.CloseIdleConnections()
	for deadline := time.Now().Add(startTimeout); time.Now().Before(deadline); {
		if response, err := client.Get(url); err == nil {
			response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-p.done:
			text, _ := os.ReadFile(p.log.Name())
			return fmt.Errorf("%s ended: %s", p.name, tail(string(text), 2000))
		case <-time.After(100 * time.Millisecond):
		}
	}
	return fmt.Errorf("%s is not healthy after %s", p.name, startTimeout)
}

func tail(s string, n int) string { return s[max(0, len(s)-n):] }

func (p *process) stop() error {
	defer p.log.Close()
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
		return nil
	case <-time.After(stopTimeout):
		err := p.cmd.Process.Kill()
		<-p.done
		return err
	}
}

// children finds the processes that run a program of a folder, as /proc shows them; none where there is no /proc.
func children(ctx context.Context, dir string) ([]int, error) {
	entries, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, entry := range entries {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		line, err := os.ReadFile(entry)
		if err != nil || !strings.HasPrefix(string(line), dir+string(filepath.Separator)) {
			continue // it ended meanwhile, or is another
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(entry))); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}
