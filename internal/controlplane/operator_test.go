// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/controllers/selfsigned"
	"github.com/olmcore/olm/csv/serving"
	"github.com/olmcore/olm/olmcore"
)

// gammaText is an operator that the API server calls: two webhooks for admission, one that converts, and an API.
const gammaText = `
apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: gamma.vVERSION.0.0}
spec:
  displayName: gamma
  version: VERSION.0.0
  cleanup: {enabled: true}
  installModes:
  - {type: OwnNamespace, supported: false}
  - {type: SingleNamespace, supported: false}
  - {type: MultiNamespace, supported: false}
  - {type: AllNamespaces, supported: true}
  customresourcedefinitions:
    owned: [{name: gammas.example.com, kind: Gamma, version: v1}, {name: gammas.example.com, kind: Gamma, version: v2}]
  apiservicedefinitions:
    owned: [{name: readings, group: measures.example.com, version: v1, kind: Reading, deploymentName: gamma, containerPort: 8443}]
  webhookdefinitions:
  - type: ValidatingAdmissionWebhook
    generateName: validate.gammas.example.com
    deploymentName: gamma
    webhookPath: /validate
    sideEffects: None
    admissionReviewVersions: [v1]
    rules: [{apiGroups: [example.com], apiVersions: [v1], resources: [gammas], operations: [CREATE, UPDATE]}]
  - type: MutatingAdmissionWebhook
    generateName: default.gammas.example.com
    deploymentName: gamma
    containerPort: 9443
    targetPort: 4343
    webhookPath: /default
    sideEffects: None
    timeoutSeconds: 5
    admissionReviewVersions: [v1]
    rules: [{apiGroups: [example.com], apiVersions: [v1], resources: [gammas], operations: [CREATE]}]
  - type: ConversionWebhook
    generateName: convert.gammas.example.com
    deploymentName: gamma
    webhookPath: /convert
    sideEffects: None
    admissionReviewVersions: [v1]
    conversionCRDs: [gammas.example.com]
  install:
    strategy: deployment
    spec:
      permissions:
      - serviceAccountName: gamma
        rules: [{apiGroups: [example.com], resources: [gammas], verbs: ["*"]}]
      deployments:
      - name: gamma
        spec:
          replicas: 2
          selector: {matchLabels: {app: gamma}}
          template:
            metadata: {labels: {app: gamma}}
            spec:
              serviceAccountName: gamma
              containers: [{name: operator, image: "registry.example.com/gamma:vVERSION"}]
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gammas.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Gamma, listKind: GammaList, plural: gammas, singular: gamma}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}}}}}}
  - name: v2
    served: true
    storage: false
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {replicas: {type: integer}}}}}}
`

// operator is the program in the Pods of gamma. It serves with the files that it was started with and, every other
// time, with those that are mounted now, as programs do that read them again.
type operator struct {
	reader olmcore.Reader
	server *http.Server
	conns  chan net.Conn
	closed chan struct{}
	awake  atomic.Bool

	mu       sync.Mutex
	started  map[types.UID]tls.Certificate // by Pod
	answered map[string]int                // by path
	again    bool
}

// playOperator plays it until the test ends.
func playOperator(t testing.TB, w *realWorld) *operator {
	o := &operator{
		reader:   w,
		conns:    make(chan net.Conn),
		closed:   make(chan struct{}),
		started:  map[types.UID]tls.Certificate{},
		answered: map[string]int{},
	}
	o.server = &http.Server{Handler: o, ErrorLog: log.New(io.Discard, "", 0)}
	o.server.SetKeepAlivesEnabled(false) // so that each call is a handshake
	network, err := w.plane.PlayNetwork(o.answer)
	require.NoError(t, err)
	go func() { _ = o.server.Serve(o) }()
	t.Cleanup(func() {
		require.NoError(t, o.server.Close())
		require.NoError(t, network.Stop())
	})
	return o
}

// Accept, Close and Addr make it a net.Listener of the connections that it is handed.
func (o *operator) Accept() (net.Conn, error) {
	select {
	case conn := <-o.conns:
		return conn, nil
	case <-o.closed:
		return nil, net.ErrClosed
	}
}

func (o *operator) Close() error {
	close(o.closed)
	return nil
}

func (o *operator) Addr() net.Addr { return &net.UnixAddr{Name: "gamma"} }

// answer serves a connection to a Pod.
func (o *operator) answer(pod *corev1.Pod, conn net.Conn) {
	files, err := o.files(pod)
	if err != nil || !o.awake.Load() {
		conn.Close()
		return
	}
	select {
	case o.conns <- tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{files}}):
	case <-o.closed:
		conn.Close()
	}
}

// files is the certificate that a Pod serves with.
func (o *operator) files(pod *corev1.Pod) (tls.Certificate, error) {
	for _, v := range pod.Spec.Volumes {
		if v.Name != "webhook-cert" {
			continue
		}
		secret, err := olmcore.Get[*corev1.Secret](context.Background(), o.reader, pod.Namespace, v.Secret.SecretName)
		if err != nil || secret == nil {
			return tls.Certificate{}, errors.Join(err, errors.New("the Secret is gone"))
		}
		mounted, err := tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
		if err != nil {
			return tls.Certificate{}, err
		}
		o.mu.Lock()
		defer o.mu.Unlock()
		if _, running := o.started[pod.UID]; !running {
			o.started[pod.UID] = mounted
		}
		if o.again = !o.again; o.again {
			return mounted, nil
		}
		return o.started[pod.UID], nil
	}
	return tls.Certificate{}, errors.New("no certificate is mounted")
}

func (o *operator) calls(path string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.answered[path]
}

// ServeHTTP is what the operator answers.
func (o *operator) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	o.mu.Lock()
	o.answered[r.URL.Path]++
	o.mu.Unlock()
	var answer any
	var err error
	switch body, _ := io.ReadAll(r.Body); {
	case r.URL.Path == "/validate" || r.URL.Path == "/default":
		answer, err = admit(r.URL.Path, body)
	case r.URL.Path == "/convert":
		answer, err = convert(body)
	case r.URL.Path == "/apis/measures.example.com/v1":
		answer = metav1.APIResourceList{
			TypeMeta:     metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"},
			GroupVersion: "measures.example.com/v1",
			APIResources: []metav1.APIResource{
				{Name: "readings", SingularName: "reading", Namespaced: true, Kind: "Reading", Verbs: metav1.Verbs{"get", "list"}},
			},
		}
	case strings.HasPrefix(r.URL.Path, "/apis/measures.example.com/v1/namespaces/"):
		answer = map[string]any{"apiVersion": "measures.example.com/v1", "kind": "ReadingList", "metadata": map[string]any{},
			"items": []any{map[string]any{"apiVersion": "measures.example.com/v1", "kind": "Reading", "metadata": map[string]any{"name": "one"}}}}
	default:
		http.NotFound(w, r)
		return
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
}

// admit refuses a negative size, and gives an object that has none the size 1.
func admit(path string, body []byte) (any, error) {
	review, object := admissionv1.AdmissionReview{}, unstructured.Unstructured{}
	if err := errors.Join(json.Unmarshal(body, &review), object.UnmarshalJSON(review.Request.Object.Raw)); err != nil {
		return nil, err
	}
	review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
	review.Request = nil
	size, sized, _ := unstructured.NestedInt64(object.Object, "spec", "size")
	switch {
	case path == "/validate" && size < 0:
		review.Response.Allowed, review.Response.Result = false, &metav1.Status{Message: "the size is negative"}
	case path == "/default" && !sized:
		review.Response.PatchType = new(admissionv1.PatchTypeJSONPatch)
		review.Response.Patch = []byte(`[{"op": "add", "path": "/spec", "value": {"size": 1}}]`)
	}
	return review, nil
}

// convert gives spec.size of v1 the name that it has in v2, spec.replicas.
func convert(body []byte) (any, error) {
	review := apiextensionsv1.ConversionReview{}
	if err := json.Unmarshal(body, &review); err != nil {
		return nil, err
	}
	review.Response = &apiextensionsv1.ConversionResponse{UID: review.Request.UID, Result: metav1.Status{Status: metav1.StatusSuccess}}
	from, to := "size", "replicas"
	if strings.HasSuffix(review.Request.DesiredAPIVersion, "/v1") {
		from, to = to, from
	}
	for _, raw := range review.Request.Objects {
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(raw.Raw); err != nil {
			return nil, err
		}
		object.SetAPIVersion(review.Request.DesiredAPIVersion)
		if spec, ok := object.Object["spec"].(map[string]any); ok && spec[from] != nil {
			spec[to] = spec[from]
			delete(spec, from)
		}
		review.Response.ConvertedObjects = append(review.Response.ConvertedObjects, runtime.RawExtension{Object: object})
	}
	review.Request = nil
	return review, nil
}

// agedIssuer issues certificates that have an hour left, and must be replaced long before; once it is renewed, new
// ones.
type agedIssuer struct {
	selfsigned.Issuer
	replaceAfter time.Duration
	renewed      atomic.Bool
}

func (a *agedIssuer) Issue(
	ctx context.Context,
	r olmcore.Reader,
	requests []serving.Request,
	now time.Time,
) ([]serving.Issued, olmcore.Result, error) {
	var aged []serving.Request
	for _, request := range requests {
		if !a.renewed.Load() { // the last third of its life
			request.NotAfter = now.Add(time.Hour + a.replaceAfter)
			request.NotBefore = request.NotAfter.Add(-3 * time.Hour)
		}
		aged = append(aged, request)
	}
	return a.Issuer.Issue(ctx, r, aged, now)
}
