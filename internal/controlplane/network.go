// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// egressSelector makes the API server call Services through a proxy, which Network is.
const egressSelector = `
apiVersion: apiserver.k8s.io/v1beta1
kind: EgressSelectorConfiguration
egressSelections:
- name: cluster
  connection: {proxyProtocol: HTTPConnect, transport: {uds: {udsName: %q}}}
`

// Network plays kube-proxy, the names of Services, and the programs in Pods: when the API server calls a Service, for a
// webhook or an APIService, or another program does through the proxy at URL, one of its ready Pods answers, each in
// turn. Which Pods those are, the EndpointSlices of Kubernetes say.
type Network struct {
	// URL is that of an HTTP proxy on loopback into the network.
	URL string

	answer    func(pod *corev1.Pod, conn net.Conn)
	client    client.Client
	listeners [2]net.Listener
	running   sync.WaitGroup

	mu    sync.Mutex
	calls int
}

// PlayNetwork starts to play; Stop ends it. answer serves a connection to a Pod, and closes it.
func (c *ControlPlane) PlayNetwork(answer func(pod *corev1.Pod, conn net.Conn)) (*Network, error) {
	config, err := c.As("kube-proxy")
	if err != nil {
		return nil, err
	}
	n := &Network{answer: answer}
	if n.client, err = client.New(config, client.Options{Scheme: scheme.Scheme}); err != nil {
		return nil, err
	}
	if n.listeners[0], err = net.Listen("unix", c.path("network")); err != nil {
		return nil, err
	}
	if n.listeners[1], err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, errors.Join(err, n.listeners[0].Close())
	}
	n.URL = "http://" + n.listeners[1].Addr().String()
	for _, l := range n.listeners {
		n.running.Go(func() { n.run(l) })
	}
	return n, nil
}

// Stop ends the play, once the answers that are being given are.
func (n *Network) Stop() error {
	err := errors.Join(n.listeners[0].Close(), n.listeners[1].Close())
	n.running.Wait()
	return err
}

func (n *Network) run(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		n.running.Go(func() { n.connect(conn) })
	}
}

// connect reads where the other side wants to go, and lets a Pod answer.
func (n *Network) connect(conn net.Conn) {
	request, err := http.ReadRequest(bufio.NewReader(conn))
	if err == nil && request.Method != http.MethodConnect {
		err = errors.New(request.Method)
	}
	var pod *corev1.Pod
	if err == nil {
		pod, err = n.podBehind(context.Background(), request.Host)
	}
	if err != nil {
		fmt.Fprintf(conn, "HTTP/1.1 502 %s\r\n\r\n", strings.ReplaceAll(err.Error(), "\n", " "))
		conn.Close()
		return
	}
	fmt.Fprint(conn, "HTTP/1.1 200 OK\r\n\r\n")
	n.answer(pod, conn)
}

// podBehind returns a ready Pod of the Service with an address.
func (n *Network) podBehind(ctx context.Context, address string) (*corev1.Pod, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	services := &corev1.ServiceList{}
	if err := n.client.List(ctx, services); err != nil {
		return nil, err
	}
	i := slices.IndexFunc(services.Items, func(s corev1.Service) bool { return s.Spec.ClusterIP == host || s.Name+"."+s.Namespace+".svc" == host })
	if i < 0 {
		return nil, fmt.Errorf("no Service has the address or name %s", host)
	}
	service := &services.Items[i]
	if !slices.ContainsFunc(service.Spec.Ports, func(p corev1.ServicePort) bool { return strconv.Itoa(int(p.Port)) == port }) {
		return nil, fmt.Errorf("service %s has no port %s", service.Name, port)
	}
	names, err := n.ready(ctx, service)
	if err != nil || len(names) == 0 {
		return nil, errors.Join(err, fmt.Errorf("service %s has no ready Pod", service.Name))
	}
	n.mu.Lock()
	n.calls++
	name := names[n.calls%len(names)]
	n.mu.Unlock()
	pod := &corev1.Pod{}
	return pod, n.client.Get(ctx, client.ObjectKey{Namespace: service.Namespace, Name: name}, pod)
}

// ready returns the names of the ready Pods of a Service, sorted.
func (n *Network) ready(ctx context.Context, service *corev1.Service) (names []string, err error) {
	endpoints := &discoveryv1.EndpointSliceList{}
	err = n.client.List(ctx, endpoints, client.InNamespace(service.Namespace), client.MatchingLabels{discoveryv1.LabelServiceName: service.Name})
	for _, slice := range endpoints.Items {
		for _, e := range slice.Endpoints {
			if e.Conditions.Ready != nil && *e.Conditions.Ready && e.TargetRef != nil && e.TargetRef.Kind == "Pod" {
				names = append(names, e.TargetRef.Name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names), err
}
