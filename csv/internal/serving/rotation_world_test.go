// SPDX-License-Identifier: Apache-2.0

package serving_test

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/csv/internal/model"
	internalserving "github.com/olmcore/olm/csv/internal/serving"
	"github.com/olmcore/olm/csv/serving"
	"github.com/olmcore/olm/fake/olm"
	"github.com/olmcore/olm/olmcore"
)

const (
	namespace  = "ns"
	deployment = "cool"
	service    = deployment + "-service"
)

// state is what managers observe of a world. A copy of it is a stale cache.
type state struct {
	version    *model.CSV // that is active
	secret     *corev1.Secret
	deployment *appsv1.Deployment
	clients    map[string]client
}

// client is a webhook configuration, a CRD with a conversion, or an APIService.
type client struct {
	version int
	bundle  []byte
}

// pod is a Pod that serves with the certificate that it mounted. Before it starts, it has none.
type servingPod struct {
	revision int64 // generation of the Deployment that it was made from
	serves   serving.Certificate
}

// world is a Deployment with its Secret and its clients, the kubelets and the Deployment controller.
type world struct {
	state
	now     time.Time
	version int // of all objects
	pods    []*servingPod
	issued  int
	// skew is how far the clock of the manager that works is ahead.
	skew time.Duration
	// known are the clients as the API server knows them, from a cache that is older by less than cacheLag.
	known   map[string]client
	learned time.Time
	said    []string
	trusts  map[string]bool // what was verified
}

func newWorld() *world {
	w := &world{now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), trusts: map[string]bool{}}
	w.state.version, w.clients = csvOf("cool.v1", "hook-a", "crd", "api"), map[string]client{}
	return w
}

// csvOf returns a CSV whose clients are named by its keywords.
func csvOf(name string, clients ...string) *model.CSV {
	c := &model.CSV{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, UID: types.UID("uid-" + name)}}
	c.Spec.Keywords = clients
	c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs = []v1alpha1.StrategyDeploymentSpec{{Name: deployment, Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "cool"}},
	}}}
	c.Spec.WebhookDefinitions = []v1alpha1.WebhookDescription{
		{DeploymentName: deployment, GenerateName: "hook", Type: v1alpha1.ValidatingAdmissionWebhook},
	}
	return c
}

func (w *world) tick() int { w.version++; return w.version }

// stamp gives a written object a new resourceVersion, and a new object a UID.
func (w *world) stamp(o metav1.Object) {
	o.SetResourceVersion(strconv.Itoa(w.tick()))
	if o.GetUID() == "" {
		o.SetUID(types.UID("uid-" + o.GetResourceVersion()))
	}
}

// snapshot returns a cache of the present state.
func (w *world) snapshot() state {
	s := w.state
	s.clients = maps.Clone(w.clients)
	return s
}

// write is one action of a manager. It reports a conflict, after which no further action of the pass is run.
type write struct {
	what string
	do   func(w *world) (conflict bool)
}

// pass returns the writes of a manager that observed a state.
func (w *world) pass(s state) (writes []write, plan internalserving.Certificates) {
	source := internalserving.Backends{Operator: model.Operator{CSV: s.version, Now: w.now.Add(w.skew), Objects: &serving.Objects{}}}
	if s.secret != nil {
		source.Objects.Secrets = olmcore.Found(s.secret)
	}
	if s.deployment != nil {
		source.Deployments = []*appsv1.Deployment{s.deployment}
	}
	wanted := s.version.Spec.Keywords
	for _, name := range slices.Sorted(maps.Keys(s.clients)) {
		source.Clients = append(source.Clients, internalserving.Client{Service: service, Bundle: s.clients[name].bundle})
	}
	for _, name := range wanted {
		if _, exists := s.clients[name]; !exists {
			source.Clients = append(source.Clients, internalserving.Client{Service: service, Missing: true})
		}
	}
	plan = internalserving.CertificatesOf(source)
	if len(plan.Requests) > 0 {
		w.issued++
		issued, _, err := olm.Issuer{Seed: strconv.Itoa(w.issued)}.Issue(context.Background(), nil, plan.Requests, w.now)
		if err != nil {
			panic(err)
		}
		source.Issued = issued
		plan = internalserving.CertificatesOf(source)
	}
	for _, a := range slices.Concat(plan.Install, plan.Settle) {
		if o, ok := objectOf(a).(*corev1.Secret); ok {
			writes = append(writes, writeOfSecret(a, o))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.clients)) {
		have := s.clients[name]
		if want := plan.Trust(deployment, have.bundle); !bytes.Equal(want, have.bundle) {
			writes = append(writes, writeOfClient(name, have.version, want))
		}
	}
	if plan.Ready(deployment) && s.secret != nil {
		if a, needed := writeOfDeployment(s, plan); needed {
			writes = append(writes, a)
		}
		for _, name := range wanted {
			if _, exists := s.clients[name]; !exists {
				if bundle := plan.Trust(deployment, nil); len(bundle) > 0 {
					writes = append(writes, writeOfClient(name, 0, bundle))
				}
			}
		}
	}
	return writes, plan
}

func objectOf(a olmcore.Action) olmcore.Object {
	switch a := a.(type) {
	case olmcore.Create:
		return a.Object
	case olmcore.Update:
		return a.After
	}
	return nil
}

func writeOfSecret(a olmcore.Action, o *corev1.Secret) write {
	verb, target, why := a.Describe()
	return write{fmt.Sprintf("%s Secret: %s", verb, why.Message), func(w *world) bool {
		switch {
		case verb == olmcore.VerbCreate && w.secret != nil:
			return false
		case verb == olmcore.VerbUpdate && w.secret == nil:
			return false
		case verb == olmcore.VerbUpdate && (w.secret.ResourceVersion != target.ResourceVersion || w.secret.UID != target.UID):
			return true
		}
		w.secret = o.DeepCopy()
		w.stamp(w.secret)
		return false
	}}
}

// writeOfClient returns the write of a client that was observed in a version. Version 0 means that it did not exist.
func writeOfClient(name string, version int, bundle []byte) write {
	return write{fmt.Sprintf("client %s: %d authorities", name, len(parse(bundle))), func(w *world) bool {
		have, exists := w.clients[name]
		switch {
		case version == 0 && exists, version != 0 && !exists:
			return false
		case version != have.version:
			return true
		}
		w.clients[name] = client{w.tick(), bundle}
		return false
	}}
}

func writeOfDeployment(s state, plan internalserving.Certificates) (write, bool) {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: deployment, Namespace: namespace}}
	plan.Mount(deployment, &d.Spec)
	version := ""
	if s.deployment != nil {
		if maps.Equal(s.deployment.Spec.Template.Annotations, d.Spec.Template.Annotations) {
			return write{}, false
		}
		version = s.deployment.ResourceVersion
	}
	return write{"Deployment", func(w *world) bool {
		switch {
		case version == "" && w.deployment != nil, version != "" && w.deployment == nil:
			return false
		case version != "" && w.deployment.ResourceVersion != version:
			return true
		case version != "":
			d.UID, d.Generation, d.Status = w.deployment.UID, w.deployment.Generation, w.deployment.Status
		}
		next := d.DeepCopy()
		next.Generation++
		w.stamp(next)
		w.deployment = next
		return false
	}}, true
}

// startPod creates a Pod from the present template. It starts once there are files to mount.
func (w *world) startPod() {
	if w.deployment == nil {
		return
	}
	updated := 0
	for _, p := range w.pods {
		if p.revision == w.deployment.Generation {
			updated++
		}
	}
	if updated < 2 {
		w.pods = append(w.pods, &servingPod{revision: w.deployment.Generation})
		w.observePods()
	}
}

// mount writes the files of the Secret into a Pod, as a kubelet does when the Pod starts and at any time later.
func (w *world) mount(i int) {
	if w.secret == nil || len(w.pods) == 0 {
		return
	}
	if c := serving.FromData(w.secret.Data); len(c.CertPEM) > 0 {
		w.pods[i%len(w.pods)].serves = c
	}
}

// stopPod deletes a Pod of an older template once one of the present template exists.
func (w *world) stopPod() {
	if w.deployment == nil {
		return
	}
	updated := slices.ContainsFunc(
		w.pods,
		func(p *servingPod) bool { return p.revision == w.deployment.Generation && len(p.serves.CertPEM) > 0 },
	)
	i := slices.IndexFunc(w.pods, func(p *servingPod) bool { return p.revision != w.deployment.Generation })
	if updated && i >= 0 {
		w.pods = slices.Delete(w.pods, i, i+1)
		w.observePods()
	}
}

// rollout creates, starts and deletes Pods once.
func (w *world) rollout() {
	w.startPod()
	for i, p := range w.pods {
		if len(p.serves.CertPEM) == 0 {
			w.mount(i)
		}
	}
	w.stopPod()
}

// observePods writes the status of the Deployment.
func (w *world) observePods() {
	if w.deployment == nil {
		return
	}
	d := w.deployment.DeepCopy()
	d.Status.ObservedGeneration, d.Status.Replicas, d.Status.UpdatedReplicas = d.Generation, int32(len(w.pods)), 0
	for _, p := range w.pods {
		if p.revision == d.Generation {
			d.Status.UpdatedReplicas++
		}
	}
	w.stamp(d)
	w.deployment = d
}

// renewAt returns the time at which the certificate of the Secret must be replaced, or zero if there is none.
func (w *world) renewAt() time.Time {
	if w.secret == nil {
		return time.Time{}
	}
	return serving.Inspect(serving.FromData(w.secret.Data), serving.Hosts(service, namespace), w.now).RenewAt
}

// cacheLag is the maximum age of the API server's cache.
const cacheLag = 10 * time.Second

// advance moves the clock. The API server's cache is never older than cacheLag.
func (w *world) advance(d time.Duration) {
	w.now = w.now.Add(d)
	if w.now.Sub(w.learned) >= cacheLag {
		w.learn()
	}
}

// learn updates the API server's cache of the clients.
func (w *world) learn() { w.known, w.learned = maps.Clone(w.clients), w.now }

// distrust returns the name of a client that does not trust a Pod with a valid certificate, or an empty string. A
// started Pod may serve with any certificate that the Secret contains from then on.
func (w *world) distrust() string {
	pods := slices.Clone(w.pods)
	if w.secret != nil && slices.ContainsFunc(pods, func(p *servingPod) bool { return len(p.serves.CertPEM) > 0 }) {
		pods = append(pods, &servingPod{serves: serving.FromData(w.secret.Data)})
	}
	for i, p := range pods {
		for _, clients := range []map[string]client{w.clients, w.known} {
			for _, name := range slices.Sorted(maps.Keys(clients)) {
				key := fmt.Sprintf("%s %s %d", p.serves.CertPEM, clients[name].bundle, w.now.Unix())
				if w.trusts[key] {
					continue
				}
				if err := verify(p.serves, clients[name].bundle, w.now); err != nil {
					return fmt.Sprintf("client %s does not trust Pod %d: %v", name, i, err)
				}
				w.trusts[key] = true
			}
		}
	}
	return ""
}

// verify verifies a certificate like a client. It also returns nil if no valid certificate is served.
func verify(c serving.Certificate, bundle []byte, now time.Time) error {
	block, _ := pem.Decode(c.CertPEM)
	if block == nil {
		return nil
	}
	leaf, err := x509.ParseCertificate(block.Bytes)
	if err != nil || now.Before(leaf.NotBefore) || now.After(leaf.NotAfter) {
		return nil
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	_, err = leaf.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now})
	return err
}
