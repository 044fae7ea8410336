// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/olmcore/olm/examples/registry"
)

// proxy is an HTTP proxy, or one of SOCKS 5, that knows where names lead that its clients cannot resolve.
type proxy struct {
	address string
	names   map[string]string
	asked   atomic.Pointer[http.Request]
}

func newProxy(t testing.TB, names map[string]string, serve func(p *proxy, conn net.Conn, read *bufio.Reader) string) *proxy {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	p := &proxy{address: l.Addr().String(), names: names}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				read := bufio.NewReader(conn)
				to, err := net.Dial("tcp", serve(p, conn, read))
				if err != nil {
					return
				}
				defer to.Close()
				go func() { _, _ = io.Copy(to, read); _ = to.(*net.TCPConn).CloseWrite() }()
				_, _ = io.Copy(conn, to)
			}()
		}
	}()
	return p
}

func serveHTTP(p *proxy, conn net.Conn, read *bufio.Reader) string {
	request, err := http.ReadRequest(read)
	if err != nil || request.Method != http.MethodConnect {
		return ""
	}
	p.asked.Store(request)
	to := p.names[request.Host]
	if to == "" {
		_, _ = io.WriteString(conn, "HTTP/1.1 403 Forbidden\r\n\r\n")
		return ""
	}
	_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\n")
	return to
}

func serveSOCKS(p *proxy, conn net.Conn, read *bufio.Reader) string {
	head := make([]byte, 2)
	_, _ = io.ReadFull(read, head)
	_, _ = io.CopyN(io.Discard, read, int64(head[1]))
	_, _ = conn.Write([]byte{5, 0})
	head = make([]byte, 5) // version, connect, reserved, a name, its length
	_, _ = io.ReadFull(read, head)
	name := make([]byte, int(head[4])+2)
	_, _ = io.ReadFull(read, name)
	_, _ = conn.Write([]byte{5, 0, 0, 1, 0, 0, 0, 0, 0, 0})
	port := binary.BigEndian.Uint16(name[len(name)-2:])

	return p.names[net.JoinHostPort(string(name[:len(name)-2]), strconv.Itoa(int(port)))]
}

// TestACatalogIsReadThroughTheProxy that GRPC_PROXY names: by a client outside of the cluster, which cannot resolve the
// Service's name.
func TestACatalogIsReadThroughTheProxy(t *testing.T) {
	for scheme, serve := range map[string]func(*proxy, net.Conn, *bufio.Reader) string{"http": serveHTTP, "socks5": serveSOCKS} {
		t.Run(scheme, func(t *testing.T) {
			s := listen(t, real(t, offering("etcd", "1.0.0")))
			p := newProxy(t, map[string]string{address: s.address}, serve)
			t.Setenv("GRPC_PROXY", scheme+"://name:word@"+p.address)
			t.Setenv("NO_PROXY", "")
			w := newWorld(t, registry.Options{Dial: fromEnvironment})
			w.connection()
			w.untilReady()
			w.requireTarget("etcd.v1.0.0")
			if request := p.asked.Load(); scheme == "http" {
				require.Equal(t, address, request.Host)
				require.Equal(t, "Basic bmFtZTp3b3Jk", request.Header.Get("Proxy-Authorization"))
			}
		})
	}
}

// fromEnvironment is what clients dial with that are given nothing else.
func fromEnvironment(ctx context.Context, address string) (net.Conn, error) {
	dial, err := registry.FromEnvironment()
	if err != nil {
		return nil, err
	}
	return dial(ctx, address)
}

// TestWhatTheProxyRefuses is said, with the proxy's own words.
func TestWhatTheProxyRefuses(t *testing.T) {
	p := newProxy(t, nil, serveHTTP)
	dial, err := registry.FromVariables(environment("GRPC_PROXY", p.address))
	require.NoError(t, err)
	w := newWorld(t, registry.Options{Dial: dial})
	w.connection()
	w.until("the failure is told", func() bool { return w.connection().State == "TRANSIENT_FAILURE" })
	require.Equal(t, "the proxy of GRPC_PROXY refuses: 403 Forbidden", w.connection().Problem)
}

func environment(pairs ...string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1], true
			}
		}
		return "", false
	}
}

// TestProxyVariables: registries have their own, in two spellings, of which the first that is not empty counts; those
// of HTTP do not count.
func TestProxyVariables(t *testing.T) {
	used := newProxy(t, map[string]string{address: listen(t, nil).address}, serveHTTP)
	for name, test := range map[string]struct {
		variables []string
		proxied   bool
	}{
		"upper case":                    {[]string{"GRPC_PROXY", "http://" + used.address}, true},
		"lower case":                    {[]string{"grpc_proxy", used.address}, true},
		"upper case comes first":        {[]string{"GRPC_PROXY", used.address, "grpc_proxy", "http://127.0.0.1:1"}, true},
		"an empty one hides none":       {[]string{"GRPC_PROXY", "", "grpc_proxy", used.address}, true},
		"those of HTTP":                 {[]string{"HTTP_PROXY", used.address, "HTTPS_PROXY", used.address, "https_proxy", used.address, "ALL_PROXY", used.address}, false},
		"the cluster is excepted":       {[]string{"GRPC_PROXY", used.address, "NO_PROXY", "example.com,.svc"}, false},
		"in lower case":                 {[]string{"GRPC_PROXY", used.address, "no_proxy", ".svc"}, false},
		"an empty one hides none of it": {[]string{"GRPC_PROXY", used.address, "NO_PROXY", "", "no_proxy", ".svc"}, false},
		"others are excepted":           {[]string{"GRPC_PROXY", used.address, "NO_PROXY", "example.com"}, true},
		"none":                          {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			dial, err := registry.FromVariables(environment(test.variables...))
			require.NoError(t, err)
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			used.asked.Store(nil)
			conn, err := dial(ctx, address) // without the proxy there is no such host
			if err == nil {
				_ = conn.Close()
			}
			require.True(t, err == nil || !test.proxied, err)
			require.Equal(t, test.proxied, used.asked.Load() != nil, "what the proxy was asked")
		})
	}
	for _, bad := range []string{"http://[", "ftp://proxy:1", ":://"} {
		_, err := registry.FromVariables(environment("GRPC_PROXY", bad, "NO_PROXY", "*"))
		require.ErrorContains(t, err, "GRPC_PROXY is no URL of a proxy", bad)
	}
	dial, err := registry.FromVariables(environment())
	require.NoError(t, err)
	for bad, want := range map[string]string{"registry": "missing port", "a:b:c": "too many colons", "unix:///run/x.sock": "unknown port"} {
		_, err = dial(t.Context(), bad)
		require.ErrorContains(t, err, want)
	}
}

// TestADialThroughTheProxyEnds with its context: a proxy that says nothing holds nothing.
func TestADialThroughTheProxyEnds(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	accepted := make(chan net.Conn, 1)
	go func() {
		conn, err := l.Accept()
		if err == nil {
			accepted <- conn
		}
	}()
	dial, err := registry.FromVariables(environment("GRPC_PROXY", l.Addr().String()))
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		conn := <-accepted
		_, _ = conn.Read(make([]byte, 1))
		cancel()
	}()
	within(t, func() { _, err = dial(ctx, address) })
	require.Error(t, err)
	require.True(t, strings.Contains(err.Error(), "i/o timeout") || strings.Contains(err.Error(), "canceled"), err)
}
