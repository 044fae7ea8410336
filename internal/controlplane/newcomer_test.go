// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/operator-framework/operator-registry/pkg/api"
	"github.com/operator-framework/operator-registry/pkg/cache"
	"github.com/operator-framework/operator-registry/pkg/server"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/olmcore/olm/examples/controllerruntime/config"
	"github.com/olmcore/olm/internal/controlplane"
)

const adapter = "../../examples/controllerruntime"

// TestANewcomerInstallsAnOperator runs the two commands of the README of examples/controllerruntime. The manager is the
// program of the Dockerfile, with the arguments of its Deployment and as its ServiceAccount; a registry of
// operator-registry serves behind the Service of the CatalogSource.
func TestANewcomerInstallsAnOperator(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join(adapter, "README.md"))
	require.NoError(t, err)
	folder := regexp.MustCompile(`(?m)^ *kubectl apply --server-side -k examples/controllerruntime/config/(\S+)$`).FindSubmatch(readme)
	sample := regexp.MustCompile(`(?m)^ *kubectl apply -f examples/controllerruntime/(\S+)$`).FindSubmatch(readme)
	require.NotNil(t, folder)
	require.NotNil(t, sample)
	binary := buildManager(t)

	w := newRealWorldWith(t, controlplane.Options{NodeMonitorGrace: 5 * time.Minute})
	w.addNode("a")
	objects, err := config.Render(string(folder[1]))
	require.NoError(t, err)
	applyAll(t, w, objects)
	deployment := get[*appsv1.Deployment](t, w, "olm", "olm")
	w.until("the Pods of the manager run", func() bool {
		return get[*appsv1.Deployment](t, w, "olm", "olm").Status.AvailableReplicas == *deployment.Spec.Replicas
	})
	text, err := os.ReadFile(filepath.Join(adapter, string(sample[1])))
	require.NoError(t, err)
	subscription := applyFile(t, w, text)
	network, err := w.plane.PlayNetwork(registryIn(t, catalogOf(t, subscription)))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, network.Stop()) })
	runManager(t, w, binary, deployment, network.URL)

	w.until("the operator is installed", subscriptionIs(t, w, subscription.Namespace, subscription.Name, v1alpha1.SubscriptionStateAtLatest, "timer.v1.0.0"))
	w.until("it runs", func() bool {
		return get[*v1alpha1.ClusterServiceVersion](t, w, subscription.Namespace, "timer.v1.0.0").Status.Phase == v1alpha1.CSVPhaseSucceeded
	})
	require.EqualValues(t, 1, get[*appsv1.Deployment](t, w, subscription.Namespace, "timer").Status.AvailableReplicas)
	catalog := get[*v1alpha1.CatalogSource](t, w, "olm", subscription.Spec.CatalogSource)
	require.Equal(t, "READY", catalog.Status.GRPCConnectionState.LastObservedState)
	refused, err := w.plane.Refused("system:serviceaccount:olm:olm")
	require.NoError(t, err)
	for _, r := range refused {
		t.Errorf("%s %s: %s", r.Verb, r.URI, r.Status.Message)
	}
}

// buildManager runs the command of the Dockerfile that builds the program.
func buildManager(t *testing.T) string {
	dockerfile, err := os.ReadFile(filepath.Join(adapter, "Dockerfile"))
	require.NoError(t, err)
	command := regexp.MustCompile(`(?m)^RUN (.*go build .*)$`).FindSubmatch(dockerfile)
	require.NotNil(t, command)
	binary := filepath.Join(t.TempDir(), "olm")
	build := exec.CommandContext(t.Context(), "sh", "-c", strings.Replace(string(command[1]), "-o /olm ", "-o "+binary+" ", 1))
	build.Dir = "../.."
	output, err := build.CombinedOutput()
	require.NoError(t, err, string(output))
	return binary
}

// applyAll is kubectl apply --server-side.
func applyAll(t *testing.T, w *realWorld, objects []*unstructured.Unstructured) {
	writer, err := client.New(w.plane.Config, client.Options{})
	require.NoError(t, err)
	for _, o := range objects {
		//nolint:staticcheck // the objects are unstructured
		err := writer.Patch(t.Context(), o.DeepCopy(), client.Apply, client.FieldOwner("kubectl"), client.ForceOwnership)
		require.NoError(t, err, "%s %s", o.GetKind(), o.GetName())
	}
}

// applyFile applies a file, and returns its Subscription.
func applyFile(t *testing.T, w *realWorld, text []byte) *v1alpha1.Subscription {
	subscription := &v1alpha1.Subscription{}
	var objects []*unstructured.Unstructured
	for _, document := range bytes.Split(text, []byte("\n---\n")) {
		o := &unstructured.Unstructured{}
		require.NoError(t, yaml.UnmarshalStrict(document, &o.Object))
		if objects = append(objects, o); o.GetKind() == v1alpha1.SubscriptionKind {
			require.NoError(t, yaml.UnmarshalStrict(document, subscription))
		}
	}
	require.NotNil(t, subscription.Spec)
	applyAll(t, w, objects)
	return subscription
}

// catalogOf returns a file-based catalog that offers the operator of testdata as what a Subscription asks for.
func catalogOf(t *testing.T, s *v1alpha1.Subscription) []byte {
	text, err := os.ReadFile("testdata/operator.yaml")
	require.NoError(t, err)
	properties := []any{map[string]any{"type": "olm.package", "value": map[string]any{"packageName": s.Spec.Package, "version": "1.0.0"}},
		map[string]any{"type": "olm.gvk", "value": map[string]any{"group": "clock.example.com", "version": "v1", "kind": "Timer"}}}
	for _, document := range bytes.Split(text, []byte("\n---\n")) {
		object, err := yaml.YAMLToJSON(document)
		require.NoError(t, err)
		properties = append(properties, map[string]any{"type": "olm.bundle.object", "value": map[string]any{"data": base64.StdEncoding.EncodeToString(object)}})
	}
	var catalog bytes.Buffer
	for _, blob := range []map[string]any{
		{"schema": "olm.package", "name": s.Spec.Package, "defaultChannel": s.Spec.Channel},
		{"schema": "olm.channel", "package": s.Spec.Package, "name": s.Spec.Channel, "entries": []any{map[string]any{"name": "timer.v1.0.0"}}},
		{"schema": "olm.bundle", "package": s.Spec.Package, "name": "timer.v1.0.0", "properties": properties},
	} {
		require.NoError(t, json.NewEncoder(&catalog).Encode(blob))
	}
	return catalog.Bytes()
}

// registryIn returns what answers in the Pods of catalogs.
func registryIn(t *testing.T, catalog []byte) func(*corev1.Pod, net.Conn) {
	r := &registryPods{}
	r.serve(t, catalog)
	return r.answer
}

// registryPods are the Pods of catalogs: the server and the cache of operator-registry.
type registryPods struct {
	mu      sync.Mutex
	stop    func()
	address string
}

// serve makes the content another one, by a server that takes the place of the one before.
func (r *registryPods) serve(t *testing.T, catalog []byte) {
	store, err := cache.New(t.TempDir(), cache.WithFormat(cache.FormatJSON))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	require.NoError(t, cache.LoadOrRebuild(t.Context(), store, fstest.MapFS{"catalog.json": {Data: catalog}}))
	registry := grpc.NewServer()
	api.RegisterRegistryServer(registry, server.NewRegistryServer(store))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	go func() { _ = registry.Serve(listener) }()
	t.Cleanup(registry.Stop)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stop != nil {
		r.stop()
	}
	r.stop, r.address = registry.Stop, listener.Addr().String()
}

func (r *registryPods) answer(pod *corev1.Pod, conn net.Conn) {
	defer conn.Close()
	if pod.Labels["olm.catalogSource"] == "" {
		return
	}
	r.mu.Lock()
	address := r.address
	r.mu.Unlock()
	behind, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	defer behind.Close()
	go func() { _, _ = io.Copy(behind, conn); behind.Close() }()
	_, _ = io.Copy(conn, behind)
}

// runManager runs the program as a Pod of the Deployment would, but for the ports that it listens on, and waits until
// it is ready.
func runManager(t *testing.T, w *realWorld, binary string, d *appsv1.Deployment, proxy string) {
	pod := d.Spec.Template.Spec
	admin, err := kubernetes.NewForConfig(w.plane.Config)
	require.NoError(t, err)
	token, err := admin.CoreV1().ServiceAccounts(d.Namespace).CreateToken(t.Context(), pod.ServiceAccountName, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	require.NoError(t, err)
	kubeconfig, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": "it",
		"clusters": []any{map[string]any{"name": "it", "cluster": map[string]any{
			"server": w.plane.Config.Host, "certificate-authority-data": w.plane.Config.CAData}}},
		"users":    []any{map[string]any{"name": "it", "user": map[string]any{"token": token.Status.Token}}},
		"contexts": []any{map[string]any{"name": "it", "context": map[string]any{"cluster": "it", "user": "it"}}},
	})
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(path, kubeconfig, 0o600))
	args := slices.Clone(pod.Containers[0].Args)
	var health string
	for i, arg := range args {
		flag, value, _ := strings.Cut(arg, "=")
		if !strings.HasPrefix(value, ":") {
			continue
		}
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		require.NoError(t, listener.Close())
		if args[i] = flag + "=" + listener.Addr().String(); flag == "--health-probe-bind-address" {
			health = listener.Addr().String()
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	manager := exec.CommandContext(ctx, binary, args...)
	manager.Cancel = func() error { return manager.Process.Signal(os.Interrupt) }
	var output bytes.Buffer
	manager.Stdout, manager.Stderr = &output, &output
	manager.Env = append(os.Environ(), "KUBECONFIG="+path, "GRPC_PROXY="+proxy)
	require.NoError(t, manager.Start())
	ended := make(chan error, 1)
	go func() { ended <- manager.Wait() }()
	t.Cleanup(func() {
		cancel()
		<-ended
		if t.Failed() {
			t.Log(output.String())
		}
	})
	w.until("the manager is ready", func() bool {
		response, err := http.Get(fmt.Sprintf("http://%s%s", health, pod.Containers[0].ReadinessProbe.HTTPGet.Path))
		if err != nil {
			return false
		}
		response.Body.Close()
		return response.StatusCode == http.StatusOK
	})
}
