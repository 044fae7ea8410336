// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math/big"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/operator-framework/operator-registry/pkg/api"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/catalog"
	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/examples/registry"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/controller"
	"github.com/olmcore/olm/subscription"
	"github.com/olmcore/olm/subscription/resolution"
)

const address = "community.ops.svc:50051"

var community = types.NamespacedName{Namespace: "ops", Name: "community"}

// world has clients whose one CatalogSource is where the test says.
type world struct {
	testing.TB
	*registry.Clients
	catalogs *controllers.Catalogs
	cluster  *olmcore.Snapshot
	woken    chan struct{}
	in       catalog.Input

	mu    sync.Mutex
	to    string // where the address leads
	wrap  func(net.Conn) net.Conn
	conns []net.Conn
}

func newWorld(t testing.TB, o registry.Options) *world {
	w := &world{TB: t, catalogs: &controllers.Catalogs{}, woken: make(chan struct{}, 1), wrap: func(c net.Conn) net.Conn { return c }}
	o.Catalogs = w.catalogs
	if o.Dial == nil {
		o.Dial = w.dial
	}
	cs := &v1alpha1.CatalogSource{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "community", UID: "1"}}
	w.in = catalog.Input{CatalogSource: cs}
	input := namespace("etcd", nil)
	var err error
	w.cluster, err = olmcore.NewSnapshot([]olmcore.Object{cs, input.OperatorGroups[0], input.Subscriptions[0]}, olmcore.Everything)
	require.NoError(t, err)
	w.Clients, err = registry.New(registry.WithoutGrace(o))
	require.NoError(t, err)
	var options controllers.Options
	w.Serve(&options)
	ctx, stop := context.WithCancel(context.Background())
	var watching sync.WaitGroup
	watching.Go(func() {
		options.Watch(ctx, func(change controller.Change) {
			if change.New.GetName() == "community" && change.Old == change.New {
				select {
				case w.woken <- struct{}{}:
				default:
				}
			}
		})
	})
	t.Cleanup(func() {
		stop()
		within(t, func() {
			w.Close()
			watching.Wait()
		})
	})
	return w
}

// within requires that something returns.
func within(t testing.TB, do func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		do()
	}()
	select {
	case <-done:
	case <-time.After(testDeadline):
		t.Error("it does not return")
	}
}

func (w *world) dial(ctx context.Context, to string) (net.Conn, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if to != address {
		return nil, errors.New("another address was dialed")
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", w.to)
	if err != nil {
		return nil, err
	}
	conn = w.wrap(conn)
	w.conns = append(w.conns, conn)
	return conn, nil
}

// leads makes the address lead to a server, for connections that are made from now on.
func (w *world) leads(s *served) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.to = s.address
}

// cut ends all connections.
func (w *world) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, conn := range w.conns {
		_ = conn.Close()
	}
	w.conns = nil
}

// pod is a Pod of the registry that runs an image.
func pod(image string, ends bool) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"olm.catalogSource": "community", "olm.managed": "true"}}}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{ImageID: image}}
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	if ends {
		p.DeletionTimestamp = new(metav1.Now())
	}
	return p
}

func (w *world) connection() *catalog.Connection { return w.Connection(w.in, address) }

// until waits for something that clients tell.
func (w *world) until(what string, holds func() bool) {
	w.Helper()
	end := time.After(testDeadline)
	for !holds() {
		select {
		case <-w.woken:
		case <-end:
			w.Fatalf("it did not come to this: %s; %+v", what, w.connection())
		}
	}
}

func (w *world) untilReady() {
	w.Helper()
	w.until("the content is read", func() bool { return w.connection().State == "READY" })
}

// target is what the Subscription gets, and why it gets nothing.
func (w *world) target() (name, failure string) {
	answer, err := w.catalogs.Resolve(w.Context(), w.cluster, subscription.ResolveRequest{Namespace: "ops"})
	switch {
	case errors.Is(err, controllers.ErrPending):
		return "", "pending"
	case err != nil:
		w.Fatal(err)
	case len(answer.Operators) > 0:
		return answer.Operators[0].Name, ""
	case answer.Failure != nil:
		return "", answer.Failure.Message
	}
	return "", ""
}

func (w *world) requireTarget(want string) {
	w.Helper()
	name, failure := w.target()
	require.Equal(w, want, name, failure)
}

// TestContentIsReadOnce: until something else is served, whatever becomes of the connection.
func TestContentIsReadOnce(t *testing.T) {
	w := newWorld(t, registry.Options{})
	first := listen(t, real(t, offering("etcd", "1.0.0")))
	w.leads(first)
	w.in.Pods.Items = []*corev1.Pod{pod("a", false)}
	began := time.Now()
	require.Equal(t, "CONNECTING", w.connection().State)
	_, failure := w.target()
	require.Contains(t, []string{"pending", ""}, failure, "nothing is concluded while it is read")
	w.untilReady()
	w.requireTarget("etcd.v1.0.0")
	before := *w.connection()
	require.Equal(t, address, before.Address)
	require.False(t, before.LastConnect.Before(began) || before.LastTransition.Before(began))

	w.cut()
	w.until("it is connected again", func() bool { return w.connection().LastConnect.After(before.LastConnect) })
	require.Equal(t, before.LastTransition, w.connection().LastTransition, "it was never reported as lost")
	require.EqualValues(t, 1, first.reads.Load(), "a connection to the same content reads nothing")

	// A Pod with a newer image takes over, while the old one still answers on the connection that there is.
	second := listen(t, real(t, offering("etcd", "1.0.0", "2.0.0")))
	w.leads(second)
	w.in.Pods.Items = []*corev1.Pod{pod("b", false), pod("a", true)}
	w.connection()
	w.until("the newer content is read", func() bool { name, _ := w.target(); return name == "etcd.v2.0.0" })
	require.EqualValues(t, 1, first.reads.Load())
	require.EqualValues(t, 1, second.reads.Load())

	// That connection might have led to the old Pod, which is gone now.
	w.in.Pods.Items = []*corev1.Pod{pod("b", false)}
	before = *w.connection()
	w.cut()
	w.until("it is connected again", func() bool { return w.connection().LastConnect.After(before.LastConnect) })
	require.EqualValues(t, 2, second.reads.Load())
	before = *w.connection()
	w.cut()
	w.until("it is connected again", func() bool { return w.connection().LastConnect.After(before.LastConnect) })
	require.EqualValues(t, 2, second.reads.Load())
}

// TestAClientKnowsWhatIsServedFromItsFirstDial: one that is told later takes what it has read for something else. It
// takes a while to find the Pod of the registry among so many.
func TestAClientKnowsWhatIsServedFromItsFirstDial(t *testing.T) {
	w := newWorld(t, registry.Options{})
	first := listen(t, real(t, offering("etcd", "1.0.0")))
	w.leads(first)
	w.in.Pods.Items = append(slices.Repeat([]*corev1.Pod{{}}, 3_000_000), pod("a", false))
	w.connection()
	w.in.Pods.Items = []*corev1.Pod{pod("a", false)}
	w.untilReady()
	before := *w.connection()
	w.cut()
	w.until("it is connected again", func() bool { return w.connection().LastConnect.After(before.LastConnect) })
	require.EqualValues(t, 1, first.reads.Load())
}

// TestARegistryWithoutPodsIsReadWithEachConnection: nothing else tells what it serves.
func TestARegistryWithoutPodsIsReadWithEachConnection(t *testing.T) {
	w := newWorld(t, registry.Options{})
	w.leads(listen(t, real(t, offering("etcd", "1.0.0"))))
	w.connection()
	w.untilReady()
	w.leads(listen(t, real(t, offering("etcd", "1.0.0", "2.0.0"))))
	w.cut()
	w.until("the newer content is read", func() bool { name, _ := w.target(); return name == "etcd.v2.0.0" })
}

// TestContentOutlivesItsConnection: a registry that is away, or sends nonsense, takes nothing away.
func TestContentOutlivesItsConnection(t *testing.T) {
	w := newWorld(t, registry.Options{})
	good := listen(t, real(t, offering("etcd", "1.0.0")))
	w.leads(good)
	w.in.Pods.Items = []*corev1.Pod{pod("a", false)}
	w.connection()
	w.untilReady()
	good.Stop()
	w.until("it is reported", func() bool { return w.connection().State == "TRANSIENT_FAILURE" })
	require.Contains(t, w.connection().Problem, "connection refused")
	w.requireTarget("etcd.v1.0.0")

	w.leads(listen(t, nil))
	w.in.Pods.Items = []*corev1.Pod{pod("b", false)}
	w.until("it is reported", func() bool {
		return w.connection().Problem == "what answers is gRPC, but no registry of a catalog: check the address, or the image"
	})
	w.requireTarget("etcd.v1.0.0")
}

// TestACutStreamIsReadAgain: nothing of a half-read catalog counts.
func TestACutStreamIsReadAgain(t *testing.T) {
	w := newWorld(t, registry.Options{})
	s := listen(t, real(t, offering("etcd", "1.0.0", "2.0.0", "3.0.0")))
	w.leads(s)
	cuts := 0
	w.wrap = func(c net.Conn) net.Conn {
		if cuts++; cuts > 1 {
			return c
		}
		return &short{Conn: c, left: 300}
	}
	w.connection()
	w.until("the failure is told", func() bool { return w.connection().State == "TRANSIENT_FAILURE" })
	require.Equal(t, "the connection was lost while the catalog was read: check the registry's log and its memory limit", w.connection().Problem)
	_, failure := w.target()
	require.Contains(t, failure, "the connection was lost")
	w.untilReady()
	require.Empty(t, w.connection().Problem)
	w.requireTarget("etcd.v3.0.0")
}

// short is a connection that is lost after some bytes.
type short struct {
	net.Conn
	left int
}

func (s *short) Read(p []byte) (int, error) {
	if s.left <= 0 {
		_ = s.Close()
		return 0, io.ErrUnexpectedEOF
	}
	n, err := s.Conn.Read(p[:min(len(p), s.left)])
	s.left -= n
	return n, err
}

// TestWhyThereIsNoConnection: each failure has a sentence that says what to do, and reaches the Subscription.
func TestWhyThereIsNoConnection(t *testing.T) {
	answers := func(text string) dialFunc {
		return func(context.Context, string) (net.Conn, error) {
			near, far := net.Pipe()
			go func() {
				_, _ = far.Read(make([]byte, 24))
				_, _ = far.Write([]byte(text))
				_, _ = io.Copy(io.Discard, far)
			}()
			return near, nil
		}
	}
	fails := func(err error) dialFunc { return func(context.Context, string) (net.Conn, error) { return nil, err } }
	expired := listenTLS(t)
	for name, test := range map[string]struct {
		dial dialFunc
		want string
	}{
		"refused":                   {to("127.0.0.1:1"), "connection refused: no Pod of the Service is ready, or nothing listens at the port"},
		"no such host":              {fails(&net.OpError{Err: &net.DNSError{IsNotFound: true, Name: "x"}}), "no such host: check the address; a name of the cluster is known inside of the cluster alone"},
		"DNS is broken":             {fails(&net.DNSError{Err: "server misbehaving", Name: "x", Server: "10.0.0.10:53"}), "the name of the host cannot be resolved: check DNS"},
		"no answer":                 {fails(context.DeadlineExceeded), "no answer: check the address, and the network policies on the way"},
		"TLS, certificate expired":  {to(expired), "the connection is closed without an answer: the registry ends, or wants TLS, which registries must not"},
		"TLS that complains":        {answers("\x15\x03\x01\x00\x02\x02\x0a" + "padding"), "what answers speaks TLS: registries must serve gRPC without it, whatever its certificate"},
		"HTTP/1":                    {answers("HTTP/1.1 400 Bad Request\r\n\r\nsecret"), "what answers speaks HTTP/1, not gRPC: check the address and its port"},
		"garbage instead of HTTP/2": {answers("\x00\xff\xffgarbage that is no frame of HTTP/2"), "what answers does not speak gRPC: check the address and its port"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, registry.Options{Dial: test.dial})
			w.connection()
			w.until("the failure is told", func() bool { return w.connection().State == "TRANSIENT_FAILURE" })
			require.Equal(t, test.want, w.connection().Problem)
			_, failure := w.target()
			require.Contains(t, failure, test.want)
		})
	}
}

type dialFunc = func(context.Context, string) (net.Conn, error)

func to(address string) dialFunc {
	return func(ctx context.Context, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", address)
	}
}

// listenTLS serves gRPC with TLS, and a certificate that expired.
func listenTLS(t testing.TB) (address string) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1, 0), DNSNames: []string{"community.ops.svc"}}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	s := grpc.NewServer(grpc.Creds(credentials.NewTLS(&tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{certificate}, PrivateKey: key}}})))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	go func() { _ = s.Serve(l) }()
	t.Cleanup(s.Stop)
	return l.Addr().String()
}

// TestWhatIsGoneIsForgotten: with its client and content; one that is made anew begins with nothing.
func TestWhatIsGoneIsForgotten(t *testing.T) {
	w := newWorld(t, registry.Options{})
	s := listen(t, real(t, offering("etcd", "1.0.0")))
	w.leads(s)
	w.connection()
	w.untilReady()

	require.Nil(t, w.Connection(w.in, ""), "its spec is bad now")
	_, failure := w.target()
	require.Contains(t, failure, "it has no registry to ask, see the status of the CatalogSource")

	w.connection()
	w.untilReady()
	w.in.CatalogSource = w.in.CatalogSource.DeepCopy()
	w.in.CatalogSource.UID = "2"
	require.Equal(t, "CONNECTING", w.connection().State)
	w.untilReady()
	require.EqualValues(t, 3, s.reads.Load())

	require.Nil(t, w.Connection(catalog.Input{CatalogSource: &v1alpha1.CatalogSource{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "community"}}}, ""))
	_, failure = w.target()
	require.Equal(t, "pending", failure, "nothing is known of it")
	w.Close()
	require.Nil(t, w.connection(), "after Close there are no clients")
}

// TestFilesComeFirst: a catalog whose content is that of a file is connected, and not read.
func TestFilesComeFirst(t *testing.T) {
	w := newWorld(t, registry.Options{})
	s := listen(t, real(t, offering("etcd", "1.0.0")))
	w.leads(s)
	file, _ := resolution.Build(offering("etcd", "9.0.0"))
	w.catalogs.Content = map[types.NamespacedName]*resolution.Catalog{community: file}
	w.connection()
	w.untilReady()
	require.Zero(t, s.reads.Load())
	w.requireTarget("etcd.v9.0.0")
}

// TestWait: for programs that decide once.
func TestWait(t *testing.T) {
	w := newWorld(t, registry.Options{})
	w.leads(listen(t, real(t, offering("etcd", "1.0.0"))))
	soon, cancel := context.WithTimeout(t.Context(), testDeadline)
	defer cancel()
	require.NoError(t, w.Wait(soon), "there is nothing to wait for")
	w.connection()
	require.NoError(t, w.Wait(soon))
	w.requireTarget("etcd.v1.0.0")

	stuck := newWorld(t, registry.Options{Dial: func(ctx context.Context, _ string) (net.Conn, error) { <-ctx.Done(); return nil, ctx.Err() }})
	stuck.connection()
	ctx, end := context.WithCancel(t.Context())
	end()
	require.ErrorIs(t, stuck.Wait(ctx), context.Canceled)
}

// TestProblemsAreTold: to who runs the clients.
func TestProblemsAreTold(t *testing.T) {
	told := make(chan []olmcore.Diagnostic, 1)
	w := newWorld(t, registry.Options{Told: func(key types.NamespacedName, problems []olmcore.Diagnostic) {
		if key == community {
			told <- problems
		}
	}})
	broken := etcd(2)
	broken.Replaces, broken.Properties[0].Value = "etcd.v1.0.0", "{"
	w.leads(listen(t, sends(etcd(1), broken, &api.Bundle{})))
	w.connection()
	w.untilReady()
	select {
	case problems := <-told:
		require.NotEmpty(t, problems)
	case <-time.After(testDeadline):
		t.Fatal("nothing is told")
	}
	w.requireTarget("etcd.v1.0.0")
}

func TestOptionsAreChecked(t *testing.T) {
	for _, o := range []registry.Options{{}, {Catalogs: &controllers.Catalogs{}, MaxBytes: -1}, {Catalogs: &controllers.Catalogs{}, MaxBundles: -1}, {Catalogs: &controllers.Catalogs{}, Timeout: -1}} {
		_, err := registry.New(o)
		require.ErrorIs(t, err, olmcore.ErrInvalidInput)
	}
}
