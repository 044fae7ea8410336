// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/olmcore/olm/csv/serving"
	"github.com/olmcore/olm/internal/controlplane"
	"github.com/olmcore/olm/olmcore"
)

// An operator of all namespaces serves webhooks and an API. The API server calls it with the certificates that two
// managers gave it, without a gap while these are replaced, and knows nothing of it any more once it is uninstalled.
func TestTheAPIServerCallsAnOperator(t *testing.T) {
	w := newRealWorldWith(t, controlplane.Options{NodeMonitorGrace: 5 * time.Minute})
	issuer := &agedIssuer{replaceAfter: 20 * time.Second}
	w.issuer = issuer
	program := playOperator(t, w)
	publish(t, map[string]int{"gamma": 1})
	namespaces(t, w, "olm", "ops", "shop")
	w.addNode("a")
	w.start(2)
	create(t, w, catalogSource(), groupOf("ops"), subscribe("ops", "gamma", v1alpha1.ApprovalAutomatic))

	w.until("its Pods run, and do not answer", func() bool {
		service := get[*apiregistrationv1.APIService](t, w, "", "v1.measures.example.com")
		return service != nil && slices.ContainsFunc(service.Status.Conditions, func(c apiregistrationv1.APIServiceCondition) bool {
			return c.Type == apiregistrationv1.Available && c.Status == apiregistrationv1.ConditionFalse && c.Reason == "FailedDiscoveryCheck"
		})
	})
	w.until("the version waits for the API", func() bool {
		status := get[*v1alpha1.ClusterServiceVersion](t, w, "ops", csvName("gamma", 1)).Status
		return status.Phase == v1alpha1.CSVPhaseInstalling && status.Message == "apiServices not installed"
	})
	program.awake.Store(true)
	w.until("it is installed", isInstalled(t, w, "ops", csvName("gamma", 1)))
	issuer.renewed.Store(true)
	secret := get[*corev1.Secret](t, w, "ops", "gamma-service-cert")
	for name, bundle := range bundles(t, w) {
		require.Equal(t, string(secret.Data[serving.CAKey]), string(bundle), name)
	}
	require.Len(t, bundles(t, w), 4)

	user := dynamicAs(t, w, "shopper")
	requireCalled(t, user, program)
	calls := repeatedly(t, user)
	w.until("its certificate is replaced", func() bool {
		now := get[*corev1.Secret](t, w, "ops", "gamma-service-cert")
		if bytes.Equal(now.Data[serving.CAKey], secret.Data[serving.CAKey]) || !isInstalled(t, w, "ops", csvName("gamma", 1))() {
			return false
		}
		for _, bundle := range bundles(t, w) {
			if !bytes.Equal(bundle, now.Data[serving.CAKey]) {
				return false
			}
		}
		return true
	})
	require.NoError(t, calls.stop())
	t.Logf("%d calls of webhooks and API while the certificate was replaced, none failed", calls.made)
	requireTrusted(t, w)

	w.settle()
	w.stop()
	before := w.writes()
	w.start(2)
	w.settle()
	require.Equal(t, before, w.writes(), "what the API server defaults is not written again by new managers")

	edit(
		t,
		w,
		"ops",
		csvName("gamma", 1),
		func(c *v1alpha1.ClusterServiceVersion) { c.Spec.WebhookDefinitions = c.Spec.WebhookDefinitions[1:] },
	)
	w.until("a webhook that the version has no more is gone", func() bool {
		return len(list[*admissionregistrationv1.ValidatingWebhookConfiguration](t, w, "")) == 0
	})
	require.Len(t, list[*admissionregistrationv1.MutatingWebhookConfiguration](t, w, ""), 1)

	remove(t, w, get[*v1alpha1.Subscription](t, w, "ops", "gamma"))
	remove(t, w, get[*v1alpha1.ClusterServiceVersion](t, w, "ops", csvName("gamma", 1)))
	w.until("the version is gone", func() bool { return get[*v1alpha1.ClusterServiceVersion](t, w, "ops", csvName("gamma", 1)) == nil })
	w.until("and nothing calls it", func() bool { return len(bundles(t, w)) == 0 && len(ofGamma(t, w)) == 0 })
	crd := get[*apiextensionsv1.CustomResourceDefinition](t, w, "", "gammas.example.com")
	require.Equal(t, apiextensionsv1.NoneConverter, crd.Spec.Conversion.Strategy)
	w.settle()
	w.check()
}

func isInstalled(t testing.TB, w world, namespace, name string) func() bool {
	return func() bool {
		c := get[*v1alpha1.ClusterServiceVersion](t, w, namespace, name)
		return c != nil && c.Status.Phase == v1alpha1.CSVPhaseSucceeded
	}
}

// bundles are what the API server trusts where it calls Services of ops, by what makes it call.
func bundles(t testing.TB, w world) map[string][]byte {
	all := map[string][]byte{}
	for _, o := range callers(t, w) {
		for i, client := range clientsOf(o) {
			all[fmt.Sprintf("%s %d", olmcore.KeyOf(o), i)] = client.CABundle
		}
	}
	return all
}

func callers(t testing.TB, w world) (all []olmcore.Object) {
	for _, gvk := range callerKinds {
		objects, err := w.List(t.Context(), gvk, "", nil)
		require.NoError(t, err)
		all = append(all, objects...)
	}
	return all
}

var callerKinds = []schema.GroupVersionKind{
	admissionregistrationv1.SchemeGroupVersion.WithKind("ValidatingWebhookConfiguration"),
	admissionregistrationv1.SchemeGroupVersion.WithKind("MutatingWebhookConfiguration"),
	apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"),
	apiregistrationv1.SchemeGroupVersion.WithKind("APIService"),
}

// clientsOf are the places at which an object makes the API server call a Service.
func clientsOf(o olmcore.Object) (clients []admissionregistrationv1.WebhookClientConfig) {
	add := func(namespace, name string, bundle []byte) {
		clients = append(
			clients,
			admissionregistrationv1.WebhookClientConfig{
				CABundle: bundle,
				Service:  &admissionregistrationv1.ServiceReference{Namespace: namespace, Name: name},
			},
		)
	}
	switch o := o.(type) {
	case *admissionregistrationv1.ValidatingWebhookConfiguration:
		for _, hook := range o.Webhooks {
			clients = append(clients, hook.ClientConfig)
		}
	case *admissionregistrationv1.MutatingWebhookConfiguration:
		for _, hook := range o.Webhooks {
			clients = append(clients, hook.ClientConfig)
		}
	case *apiextensionsv1.CustomResourceDefinition:
		if c := o.Spec.Conversion; c != nil && c.Webhook != nil {
			add(c.Webhook.ClientConfig.Service.Namespace, c.Webhook.ClientConfig.Service.Name, c.Webhook.ClientConfig.CABundle)
		}
	case *apiregistrationv1.APIService:
		if s := o.Spec.Service; s != nil {
			add(s.Namespace, s.Name, o.Spec.CABundle)
		}
	}
	return clients
}

func dynamicAs(t testing.TB, w *realWorld, name string) dynamic.Interface {
	config, err := w.plane.As(name)
	require.NoError(t, err)
	user, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	return user
}

var (
	gammasV1 = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "gammas"}
	gammasV2 = schema.GroupVersionResource{Group: "example.com", Version: "v2", Resource: "gammas"}
	readings = schema.GroupVersionResource{Group: "measures.example.com", Version: "v1", Resource: "readings"}
)

func gamma(name string, spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Gamma", "metadata": map[string]any{"namespace": "shop", "name": name}, "spec": spec}}
}

// requireCalled: each way in which the API server calls the operator counts.
func requireCalled(t testing.TB, user dynamic.Interface, program *operator) {
	shop := user.Resource(gammasV1).Namespace("shop")
	_, err := shop.Create(t.Context(), gamma("negative", map[string]any{"size": int64(-1)}), metav1.CreateOptions{})
	require.ErrorContains(t, err, `denied the request: the size is negative`)
	made, err := shop.Create(t.Context(), gamma("first", map[string]any{}), metav1.CreateOptions{})
	require.NoError(t, err)
	require.Equal(t, map[string]any{"size": int64(1)}, made.Object["spec"], "the webhook gave it a size")
	converted, err := user.Resource(gammasV2).Namespace("shop").Get(t.Context(), "first", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, map[string]any{"replicas": int64(1)}, converted.Object["spec"], "the webhook converted it")
	served, err := user.Resource(readings).Namespace("shop").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, served.Items, 1)
	for _, path := range []string{"/validate", "/default", "/convert", "/apis/measures.example.com/v1", "/apis/measures.example.com/v1/namespaces/shop/readings"} {
		require.NotZero(t, program.calls(path), path)
	}
}

// repeated are calls that go on until they are stopped.
type repeated struct {
	cancel context.CancelFunc
	done   sync.WaitGroup
	made   int
	failed []error
}

func (r *repeated) stop() error {
	r.cancel()
	r.done.Wait()
	return errors.Join(r.failed...)
}

// repeatedly makes the API server call the operator in all ways, again and again.
func repeatedly(t testing.TB, user dynamic.Interface) *repeated {
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	r := &repeated{cancel: cancel}
	once := func(i int) error {
		o := gamma(fmt.Sprintf("probe-%d", i), map[string]any{})
		_, err := user.Resource(gammasV1).Namespace("shop").Create(context.Background(), o, metav1.CreateOptions{})
		_, converting := user.Resource(gammasV2).Namespace("shop").Get(context.Background(), "first", metav1.GetOptions{})
		_, reading := user.Resource(readings).Namespace("shop").List(context.Background(), metav1.ListOptions{})
		return errors.Join(
			err,
			converting,
			reading,
			user.Resource(gammasV1).Namespace("shop").Delete(context.Background(), o.GetName(), metav1.DeleteOptions{}),
		)
	}
	r.done.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			if err := once(i); err != nil {
				r.failed = append(r.failed, fmt.Errorf("%s: %w", time.Now().Format(time.TimeOnly), err))
			}
			r.made += 4
			time.Sleep(100 * time.Millisecond)
		}
	})
	return r
}

// requireTrusted looks at the cluster after each write: whoever calls the operator trusts the certificate in its
// Secret, also the one before, as long as Pods serve with that; and in between both authorities are trusted.
func requireTrusted(t testing.TB, w *realWorld) {
	requests, err := w.plane.Requests("")
	require.NoError(t, err)
	var all []version
	for key, versions := range historyOf(t, requests) {
		if strings.HasPrefix(key, "/secrets/ops/gamma-service-cert") ||
			slices.ContainsFunc(versions, func(v version) bool { return len(clientsOf(v.object)) > 0 }) {
			all = append(all, versions...)
		}
	}
	slices.SortStableFunc(all, func(a, b version) int { return cmp.Compare(a.resourceVersion, b.resourceVersion) })
	now := map[string]olmcore.Object{}
	authorities := map[string][]int{} // how many there were, by caller
	var secret *corev1.Secret
	for _, v := range all {
		key := olmcore.KeyOf(v.object).String()
		now[key] = v.object
		if s, ok := v.object.(*corev1.Secret); ok {
			secret = s
		}
		for name, o := range now {
			for _, client := range clientsOf(o) {
				requireVerifies(t, secret, client, v.resourceVersion, name)
				n, counts := len(new(serving.Memory).Bundle(client.CABundle)), authorities[name]
				if len(counts) == 0 || counts[len(counts)-1] != n {
					authorities[name] = append(counts, n)
				}
			}
		}
	}
	require.Len(t, authorities, 4)
	for name, counts := range authorities {
		require.Equal(t, []int{1, 2, 1}, counts, "authorities of %s", name)
	}
}

func requireVerifies(t testing.TB, secret *corev1.Secret, client admissionregistrationv1.WebhookClientConfig, at uint64, name string) {
	require.NotNil(t, secret, "%s calls before there is a certificate", name)
	pair, err := tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	require.NoError(t, err)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(client.CABundle)
	_, err = pair.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: client.Service.Name + "." + client.Service.Namespace + ".svc"})
	require.NoError(t, err, "%s at version %d", name, at)
}

// writes counts those of all managers.
func (w *realWorld) writes() (n int) {
	requests, err := w.plane.Requests("")
	require.NoError(w.t, err)
	for _, r := range requests {
		if r.Writes() && strings.HasPrefix(r.User.Username, "manager-") {
			n++
		}
	}
	return n
}

// ofGamma are the objects that the operator had to serve.
func ofGamma(t testing.TB, w world) (names []string) {
	for _, o := range slices.Concat(
		objects[*corev1.Service](t, w), objects[*corev1.Secret](t, w), objects[*rbacv1.Role](t, w), objects[*rbacv1.RoleBinding](t, w),
		objects[*rbacv1.ClusterRole](t, w), objects[*rbacv1.ClusterRoleBinding](t, w),
	) {
		if strings.HasPrefix(o.GetName(), "gamma-service") || strings.HasPrefix(o.GetName(), csvName("gamma", 1)) {
			names = append(names, olmcore.KeyOf(o).String())
		}
	}
	return names
}

func objects[T olmcore.Object](t testing.TB, w world) (all []olmcore.Object) {
	for _, o := range list[T](t, w, "") {
		all = append(all, o)
	}
	return all
}
