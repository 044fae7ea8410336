// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/yaml"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/decode"
)

var packageManifests = schema.GroupVersionResource{Group: "packages.operators.coreos.com", Version: "v1", Resource: "packagemanifests"}

// content of a catalog with one package; with icon it is one that operator-registry would not serve, as it looks into
// it.
const icon = `,"icon":{"base64data":"PHN2Zy8+","mediatype":"image/svg+xml"}`

const packageText = `
{"schema":"olm.package","name":"NAME","defaultChannel":"stable"ICON}
{"schema":"olm.channel","package":"NAME","name":"stable","entries":[{"name":"NAME.v1"}]}
{"schema":"olm.bundle","package":"NAME","name":"NAME.v1","image":"i","properties":[{"type":"olm.package","value":{"packageName":"NAME","version":"1.0.0"}}]}
`

// The manifests of examples/packageserver are applied, the manager installs them as an operator, and its program, in
// the Pod with the certificate that the manager made, answers what kubectl asks of the API server: who may see a
// namespace sees what can be installed in it. One catalog is a file; the other is what a registry of operator-registry
// serves behind its Service, until that serves something else.
func TestPackageManifestsAreServed(t *testing.T) {
	w := newRealWorld(t)
	namespaces(t, w, "olm", "team", "ops")
	own := catalogSource()
	own.Namespace, own.Name, own.Spec.DisplayName = "team", "own", "The team's"
	create(t, w, catalogSource(), own)
	edit(t, w, "olm", "community", func(c *v1alpha1.CatalogSource) { c.Spec.DisplayName = "Community" })
	for _, o := range manifestsOf(t, "../../examples/packageserver/config") {
		create(t, w, o)
	}
	registry := &registryPods{}
	registry.serve(t, packagesText("", "etcd", "grafana"))
	servePackages(t, w, registry, map[string][]string{"team/own": {"etcd"}})
	w.addNode("a")
	w.start(1)
	w.until("the API is there", func() bool {
		service := get[*apiregistrationv1.APIService](t, w, "", "v1.packages.operators.coreos.com")
		return service != nil && slices.ContainsFunc(service.Status.Conditions, func(c apiregistrationv1.APIServiceCondition) bool {
			return c.Type == apiregistrationv1.Available && c.Status == apiregistrationv1.ConditionTrue
		})
	})
	w.until("its version is installed", isInstalled(t, w, "olm-packages", "packageserver"))

	admin := dynamic.NewForConfigOrDie(configOf(t, w, "")).Resource(packageManifests)
	offered := func(want ...string) func() bool {
		return func() bool {
			list, err := admin.List(t.Context(), metav1.ListOptions{})
			require.NoError(t, err)
			return slices.Equal(want, packageNames(list))
		}
	}
	w.until("the registry was read", offered("olm/etcd of community", "team/etcd of own", "olm/grafana of community"))

	for _, namespace := range []string{"team", "olm"} {
		binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "packages"}}
		binding.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "olm-packages-view"}
		binding.Subjects = []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "dev-of-" + namespace}}
		create(t, w, binding)
	}
	discovered, err := discovery.NewDiscoveryClientForConfigOrDie(configOf(t, w, "dev-of-team")).ServerResourcesForGroupVersion("packages.operators.coreos.com/v1")
	require.NoError(t, err)
	require.Equal(t, "packagemanifests", discovered.APIResources[0].Name)
	require.Equal(t, metav1.Verbs{"get", "list"}, discovered.APIResources[0].Verbs)

	for _, c := range []struct {
		user, namespace string
		want            []string // nil: forbidden
	}{
		{"dev-of-team", "team", []string{"team/etcd of own", "team/etcd of community", "team/grafana of community"}},
		{"dev-of-olm", "olm", []string{"olm/etcd of community", "olm/grafana of community"}},
		{"dev-of-olm", "team", nil}, {"dev-of-team", "", nil}, {"passer-by", "team", nil},
		{"", "", []string{"olm/etcd of community", "team/etcd of own", "olm/grafana of community"}},
		{"", "ops", []string{"ops/etcd of community", "ops/grafana of community"}},
	} {
		client := dynamic.NewForConfigOrDie(configOf(t, w, c.user))
		list, err := client.Resource(packageManifests).Namespace(c.namespace).List(t.Context(), metav1.ListOptions{})
		if c.want == nil {
			require.True(t, apierrors.IsForbidden(err), "%s in %s: %v", c.user, c.namespace, err)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, c.want, packageNames(list), "%s in %s", c.user, c.namespace)
	}
	one, err := dynamic.NewForConfigOrDie(configOf(t, w, "dev-of-team")).Resource(packageManifests).Namespace("team").Get(t.Context(), "etcd", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, "The team's", one.Object["status"].(map[string]any)["catalogSourceDisplayName"])

	table, err := raw(t, w, "dev-of-team", "application/json;as=Table;v=v1;g=meta.k8s.io,application/json", "packagemanifests")
	require.NoError(t, err)
	var columns metav1.Table
	require.NoError(t, json.Unmarshal(table, &columns))
	require.Equal(t, []any{"etcd", "The team's"}, columns.Rows[0].Cells[:2], "as kubectl prints it")
	image, err := raw(t, w, "dev-of-team", "image/*", "packagemanifests", "etcd", "icon")
	require.NoError(t, err)
	require.Equal(t, "<svg/>", string(image))
	_, err = raw(t, w, "passer-by", "image/*", "packagemanifests", "etcd", "icon")
	require.True(t, apierrors.IsForbidden(err), "%v", err)

	remove(t, w, get[*v1alpha1.CatalogSource](t, w, "team", "own"))
	w.until("a catalog that is gone offers nothing", offered("olm/etcd of community", "olm/grafana of community"))
	registry.serve(t, packagesText("", "etcd", "prometheus"))
	w.until("what the registry serves now takes the place of what it served", offered("olm/etcd of community", "olm/prometheus of community"))
}

func packagesText(icon string, names ...string) (text []byte) {
	for _, name := range names {
		text = append(text, strings.NewReplacer("NAME", name, "ICON", icon).Replace(packageText)...)
	}
	return text
}

func packageNames(list *unstructured.UnstructuredList) (names []string) {
	for _, o := range list.Items {
		source, _, _ := unstructured.NestedString(o.Object, "status", "catalogSource")
		names = append(names, o.GetNamespace()+"/"+o.GetName()+" of "+source)
	}
	return names
}

// configOf acts as a user without rights of his own, "" for the administrator.
func configOf(t testing.TB, w *realWorld, user string) *rest.Config {
	config := rest.CopyConfig(w.plane.Config)
	if user != "" {
		config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:authenticated"}}
	}
	return config
}

// raw asks for what is in namespace team.
func raw(t testing.TB, w *realWorld, user, accept string, path ...string) ([]byte, error) {
	client, err := discovery.NewDiscoveryClientForConfig(configOf(t, w, user))
	require.NoError(t, err)
	return client.RESTClient().Get().AbsPath(append([]string{"/apis/packages.operators.coreos.com/v1/namespaces/team"}, path...)...).
		SetHeader("Accept", accept).DoRaw(t.Context())
}

// manifestsOf reads what a kustomization lists.
func manifestsOf(t testing.TB, dir string) (objects []olmcore.Object) {
	text, err := os.ReadFile(filepath.Join(dir, "kustomization.yaml"))
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		name, ok := strings.CutPrefix(strings.TrimSpace(line), "- ")
		if !ok {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		for _, document := range strings.Split(string(text), "\n---\n") {
			data, err := yaml.YAMLToJSON([]byte(document))
			require.NoError(t, err)
			o, err := decode.Decode(data)
			require.NoError(t, err)
			objects = append(objects, o)
		}
	}
	return objects
}

// servePackages runs the program of examples/packageserver, built as its Dockerfile does it, in place of the Pods. It
// has the content of some catalogs from files, and reaches the registries of others.
func servePackages(t testing.TB, w *realWorld, registry *registryPods, catalogs map[string][]string) {
	dir := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(dir, "packageserver"), "./cmd/packageserver")
	build.Dir = "../../examples/packageserver"
	output, err := build.CombinedOutput()
	require.NoError(t, err, string(output))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := listener.Addr().String()
	require.NoError(t, listener.Close())
	_, port, err := net.SplitHostPort(address)
	require.NoError(t, err)

	args := []string{"--bind-address=127.0.0.1", "--secure-port=" + port, "--kubeconfig=kubeconfig"}
	for source, names := range catalogs {
		file := filepath.Join(dir, strings.ReplaceAll(source, "/", "-")+".json")
		require.NoError(t, os.WriteFile(file, packagesText(icon, names...), 0o600))
		args = append(args, "--catalog="+source+"="+file)
	}
	p := &packageServer{w: w, dir: dir, args: args, address: address, registry: registry}
	network, err := w.plane.PlayNetwork(p.answer)
	require.NoError(t, err)
	p.proxy = network.URL
	t.Cleanup(func() {
		// The API server keeps its connections: they end with the program.
		p.start.Do(func() {})
		if p.process != nil {
			_ = p.process.Process.Kill()
			_ = p.process.Wait()
		}
		require.NoError(t, network.Stop())
		if t.Failed() {
			t.Log(p.output.String())
		}
	})
}

// packageServer is the program in the Pods. It starts with the files and the account of the first one that is called.
type packageServer struct {
	w       *realWorld
	dir     string
	args    []string
	address string
	// registry answers in the Pods of catalogs, which the program reaches through proxy.
	registry *registryPods
	proxy    string

	start   sync.Once
	process *exec.Cmd
	output  strings.Builder
}

func (p *packageServer) answer(pod *corev1.Pod, conn net.Conn) {
	if pod.Labels["olm.catalogSource"] != "" {
		p.registry.answer(pod, conn)
		return
	}
	defer conn.Close()
	p.start.Do(func() {
		if err := p.run(pod); err != nil {
			p.w.t.Errorf("the program does not start: %v", err)
		}
	})
	server, err := net.Dial("tcp", p.address)
	if err != nil {
		return // it does not listen yet; the API server tries again
	}
	defer server.Close()
	go func() {
		_, _ = io.Copy(server, conn)
		_ = server.(*net.TCPConn).CloseWrite()
	}()
	_, _ = io.Copy(conn, server)
}

// run makes the files that a kubelet would, and starts the program.
func (p *packageServer) run(pod *corev1.Pod) error {
	i := slices.IndexFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == "apiservice-cert" })
	if i < 0 {
		return errors.New("no certificate is mounted")
	}
	secret, err := olmcore.Get[*corev1.Secret](context.Background(), p.w, pod.Namespace, pod.Spec.Volumes[i].Secret.SecretName)
	if err != nil || secret == nil {
		return errors.Join(err, errors.New("the Secret is gone"))
	}
	certificates := filepath.Join(p.dir, "apiserver.local.config", "certificates")
	if err := os.MkdirAll(certificates, 0o700); err != nil {
		return err
	}
	for _, item := range pod.Spec.Volumes[i].Secret.Items {
		if err := os.WriteFile(filepath.Join(certificates, item.Path), secret.Data[item.Key], 0o600); err != nil {
			return err
		}
	}
	if err := p.account(pod); err != nil {
		return err
	}
	p.process = exec.Command(filepath.Join(p.dir, "packageserver"), append(slices.Clone(pod.Spec.Containers[0].Args), p.args...)...)
	p.process.Env = append(os.Environ(), "GRPC_PROXY="+p.proxy)
	p.process.Dir, p.process.Stdout, p.process.Stderr = p.dir, &p.output, &p.output
	return p.process.Start()
}

// account makes the kubeconfig of the Pod's ServiceAccount.
func (p *packageServer) account(pod *corev1.Pod) error {
	clients, err := kubernetes.NewForConfig(p.w.plane.Config)
	if err != nil {
		return err
	}
	token, err := clients.CoreV1().ServiceAccounts(pod.Namespace).CreateToken(context.Background(), pod.Spec.ServiceAccountName,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(time.Hour / time.Second))}}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("the account of the Pod: %w", err)
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: p.w.plane.Config.Host, CertificateAuthorityData: p.w.plane.Config.CAData}
	config.AuthInfos["a"] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	config.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "a"}
	config.CurrentContext = "x"
	return clientcmd.WriteToFile(*config, filepath.Join(p.dir, "kubeconfig"))
}
