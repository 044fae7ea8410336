// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/http/httpproxy"
	"golang.org/x/net/proxy"
)

// schemes are those of proxies.
var schemes = []string{"http", "https", "socks5", "socks5h"}

type dialFunc = func(ctx context.Context, address string) (net.Conn, error)

// fromEnvironment returns the dialer that the environment asks for: registries have a proxy variable of their own,
// GRPC_PROXY, as in OLM. HTTP_PROXY and HTTPS_PROXY do not count.
func fromEnvironment() (dialFunc, error) {
	return fromVariables(os.LookupEnv)
}

func fromVariables(lookup func(string) (string, bool)) (dialFunc, error) {
	first := func(names ...string) (value string) {
		for _, name := range names {
			if value, _ := lookup(name); value != "" {
				return value
			}
		}
		return ""
	}
	through, except := first("GRPC_PROXY", "grpc_proxy"), first("NO_PROXY", "no_proxy")
	direct := &net.Dialer{KeepAliveConfig: net.KeepAliveConfig{Enable: true}}
	if through != "" {
		via, err := url.Parse(through)
		if !strings.Contains(through, "://") {
			via, err = url.Parse("http://" + through)
		}
		// One that cannot be used would be left out silently.
		if err != nil || via.Hostname() == "" || !slices.Contains(schemes, via.Scheme) {
			return nil, errors.New("GRPC_PROXY is no URL of a proxy, such as http://proxy:3128, https://proxy:3128 or socks5://proxy:1080")
		}
		through = via.String()
	}
	proxyOf := (&httpproxy.Config{HTTPSProxy: through, NoProxy: except}).ProxyFunc()
	return func(ctx context.Context, address string) (net.Conn, error) {
		if _, _, err := net.SplitHostPort(address); err != nil {
			return nil, err
		}
		via, err := proxyOf(&url.URL{Scheme: "https", Host: address})
		switch {
		case err != nil:
			return nil, err
		case via == nil:
			return direct.DialContext(ctx, "tcp", address)
		}
		return throughProxy(ctx, direct, via, address)
	}, nil
}

// throughProxy connects to an address, whose name the proxy resolves.
func throughProxy(ctx context.Context, direct *net.Dialer, via *url.URL, address string) (net.Conn, error) {
	if via.Scheme == "http" || via.Scheme == "https" {
		return connect(ctx, direct, via, address)
	}
	dialer, err := proxy.FromURL(via, direct)
	if err != nil {
		return nil, err
	}
	return dialer.(proxy.ContextDialer).DialContext(ctx, "tcp", address)
}

// connect asks an HTTP proxy for a tunnel.
func connect(ctx context.Context, direct *net.Dialer, via *url.URL, address string) (conn net.Conn, err error) {
	port := via.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[via.Scheme]
	}
	if conn, err = direct.DialContext(ctx, "tcp", net.JoinHostPort(via.Hostname(), port)); err != nil {
		return nil, fmt.Errorf("the proxy of GRPC_PROXY: %w", err)
	}
	raw := conn
	stop := context.AfterFunc(ctx, func() { _ = raw.SetDeadline(time.Now()) })
	defer func() {
		if !stop() && err == nil {
			err = ctx.Err()
		}
		if err != nil {
			_ = raw.Close()
		}
	}()
	if via.Scheme == "https" {
		conn = tls.Client(conn, &tls.Config{ServerName: via.Hostname()})
	}
	request := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: address}, Host: address, Header: http.Header{}}
	if user := via.User; user != nil {
		password, _ := user.Password()
		request.Header.Set("Proxy-Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(user.Username()+":"+password)))
	}
	if err = request.Write(conn); err != nil {
		return nil, fmt.Errorf("the proxy of GRPC_PROXY: %w", err)
	}
	answer := bufio.NewReaderSize(conn, 4<<10)
	response, err := http.ReadResponse(answer, request)
	if err != nil {
		return nil, fmt.Errorf("the proxy of GRPC_PROXY: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the proxy of GRPC_PROXY refuses: %s", response.Status)
	}
	return &tunnel{Conn: conn, read: answer}, nil
}

// tunnel reads first what came together with the proxy's answer.
type tunnel struct {
	net.Conn
	read *bufio.Reader
}

// Read implements net.Conn.
func (t *tunnel) Read(p []byte) (int, error) { return t.read.Read(p) }
