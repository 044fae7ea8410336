// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/olmcore/olm/fake/internal/store"
	"github.com/olmcore/olm/olmcore"
)

// Serving simulates the servers of the cluster's webhooks and APIServices: the workloads behind their Services.
type Serving struct{ cluster *Cluster }

// Serving returns the servers of webhooks and APIServices.
func (c *Cluster) Serving() Serving { return Serving{c} }

// Webhooks returns a function for Cluster.Webhooks that makes the workloads of the cluster answer. A call reaches its
// webhook if the Service exists, has the port and selects running Pods, and if the caBundle verifies the certificate of
// these Pods for the name <service>.<namespace>.svc at the current time. Otherwise it fails as on a real cluster.
// A call that reaches its webhook gets the result of answer. If answer is nil, every write is allowed, and converted
// objects only get the requested version.
//
// Pods serve with the Secret with tls.crt and tls.key that their template mounts. Of several Secrets, the one whose name
// ends in -service-cert is used. A program may read the files once or whenever they change, so both the content at the
// time when the Pods of this template started and the present content must verify. Webhooks with a URL are always
// reached.
func (s Serving) Webhooks(answer func(WebhookCall) WebhookAnswer) func(WebhookCall) (WebhookAnswer, error) {
	if answer == nil {
		answer = func(call WebhookCall) WebhookAnswer { return WebhookAnswer{Objects: call.Relabelled()} }
	}
	return func(call WebhookCall) (WebhookAnswer, error) {
		if err := s.cluster.reach(addressOf(call.Client)); err != nil {
			return WebhookAnswer{}, err
		}
		return answer(call), nil
	}
}

// Relabelled returns the objects of a conversion with the version that is asked for, and no other change.
func (call WebhookCall) Relabelled() []olmcore.Object {
	for _, o := range call.Objects {
		o.GetObjectKind().SetGroupVersionKind(olmcore.GVKOf(o).GroupKind().WithVersion(call.Version))
	}
	return call.Objects
}

// Check calls every Service that the webhook configurations, CRDs and APIServices of the cluster reference, as Webhooks
// does, and joins the errors. It returns nil if all of them would answer now.
func (s Serving) Check() error {
	c := s.cluster
	var problems []error
	check := func(o olmcore.Object, webhook string, at address) {
		if err := c.reach(at); err != nil {
			problems = append(problems, fmt.Errorf("%s: %s: %w", olmcore.KeyOf(o), webhook, err))
		}
	}
	for _, o := range c.store.Table(mutatingKind).List("") {
		for _, hook := range o.(*admissionregistrationv1.MutatingWebhookConfiguration).Webhooks {
			check(o, hook.Name, addressOf(hook.ClientConfig))
		}
	}
	for _, o := range c.store.Table(validatingKind).List("") {
		for _, hook := range o.(*admissionregistrationv1.ValidatingWebhookConfiguration).Webhooks {
			check(o, hook.Name, addressOf(hook.ClientConfig))
		}
	}
	for _, o := range c.store.Table(store.CRDKind).List("") {
		if conversion := conversionOf(o.(*customResourceDefinition)); conversion != nil {
			check(o, "conversion", addressOf(clientOf(conversion)))
		}
	}
	for _, o := range c.store.Table(store.APIServiceKind).List("") {
		spec := o.(*apiregistrationv1.APIService).Spec
		if spec.Service != nil && !spec.InsecureSkipTLSVerify {
			check(o, "APIService", address{
				service: types.NamespacedName{Namespace: spec.Service.Namespace, Name: spec.Service.Name},
				port:    spec.Service.Port, path: "/apis/" + spec.Group + "/" + spec.Version, bundle: spec.CABundle,
			})
		}
	}
	return errors.Join(problems...)
}

// address is what a client is configured with. It has no service when it is a URL.
type address struct {
	service types.NamespacedName
	port    *int32
	path    string
	bundle  []byte
}

func addressOf(client admissionregistrationv1.WebhookClientConfig) address {
	if client.Service == nil {
		return address{}
	}
	s := client.Service
	at := address{service: types.NamespacedName{Namespace: s.Namespace, Name: s.Name}, port: s.Port, path: "/", bundle: client.CABundle}
	if s.Path != nil {
		at.path = *s.Path
	}
	return at
}

// reach is the error of a call, in the words of an API server.
func (c *Cluster) reach(at address) error {
	if at.service.Name == "" {
		return nil
	}
	port := int32(443)
	if at.port != nil {
		port = *at.port
	}
	host := at.service.Name + "." + at.service.Namespace + ".svc"
	if err := c.connect(at, port, host); err != nil {
		return fmt.Errorf("%s \"https://%s:%d%s?timeout=10s\": %w", "Post", host, port, at.path, err)
	}
	return nil
}

func (c *Cluster) connect(at address, port int32, host string) error {
	service := store.Get[*corev1.Service](c.store, store.ServiceKind, at.service.Namespace, at.service.Name)
	if service == nil {
		return fmt.Errorf("service %q not found", at.service.Name)
	}
	if !slices.ContainsFunc(service.Spec.Ports, func(p corev1.ServicePort) bool { return p.Port == port }) {
		return fmt.Errorf("no service port %d found for service %q", port, at.service.Name)
	}
	deployments, pods := c.endpoints(service)
	if len(deployments)+len(pods) == 0 {
		return fmt.Errorf("no endpoints available for service %q", at.service.Name)
	}
	for _, d := range deployments {
		secrets := []*corev1.Secret{c.started[d.UID].secret, c.certificateOf(d.Namespace, &d.Spec.Template.Spec)}
		if err := c.verify(at, host, secrets...); err != nil {
			return err
		}
	}
	for _, pod := range pods {
		if err := c.verify(at, host, c.certificateOf(pod.Namespace, &pod.Spec)); err != nil {
			return err
		}
	}
	return nil
}

// endpoints are what a Service leads to.
func (c *Cluster) endpoints(service *corev1.Service) (deployments []*appsv1.Deployment, pods []*corev1.Pod) {
	if len(service.Spec.Selector) == 0 {
		return nil, nil
	}
	selector := &metav1.LabelSelector{MatchLabels: service.Spec.Selector}
	for _, o := range c.store.Table(store.DeploymentKind).List(service.Namespace) {
		if d := o.(*appsv1.Deployment); d.Status.AvailableReplicas > 0 && matches(selector, d.Spec.Template.Labels) {
			deployments = append(deployments, d)
		}
	}
	for _, o := range c.store.Table(store.PodKind).List(service.Namespace) {
		if pod := o.(*corev1.Pod); podReady(pod) && matches(selector, pod.Labels) {
			pods = append(pods, pod)
		}
	}
	return deployments, pods
}

// started is with what the Pods of a Deployment's template began to serve.
type started struct {
	template string
	secret   *corev1.Secret
}

// noteStart remembers the certificate of Pods that start now. It is called before the status says that they run.
func (c *Cluster) noteStart(d *appsv1.Deployment) {
	template := c.revisions[d.UID].template
	before, known := c.started[d.UID]
	if len(d.Spec.Template.Spec.Volumes) == 0 && !known || d.Status.AvailableReplicas > 0 && before.template == template {
		return
	}
	c.started[d.UID] = started{template, c.certificateOf(d.Namespace, &d.Spec.Template.Spec)}
}

// certificateOf returns the Secret with which a Pod serves, nil for none.
func (c *Cluster) certificateOf(namespace string, pod *corev1.PodSpec) (found *corev1.Secret) {
	for _, v := range pod.Volumes {
		if v.Secret == nil {
			continue
		}
		secret := store.Get[*corev1.Secret](c.store, store.SecretKind, namespace, v.Secret.SecretName)
		if secret == nil || len(secret.Data[corev1.TLSCertKey]) == 0 {
			continue
		}
		if found == nil || strings.HasSuffix(secret.Name, "-service-cert") {
			found = secret
		}
	}
	return found
}

// verify is the TLS handshake with what may serve with any of some Secrets; nil ones do not count.
func (c *Cluster) verify(at address, host string, secrets ...*corev1.Secret) error {
	secrets = slices.DeleteFunc(slices.Compact(secrets), func(s *corev1.Secret) bool { return s == nil })
	if len(secrets) == 0 {
		return errors.New("dial tcp: connect: connection refused")
	}
	for _, s := range secrets {
		if err := c.handshakes.verify(at.bundle, host, s, c.Now()); err != nil {
			return err
		}
	}
	return nil
}

// handshakes remembers the TLS handshakes that succeeded, and from when to when they do: their signatures cost most of
// the work of Serving.Check.
type handshakes map[handshake]validity

// handshake is what a TLS handshake depends on, beside the time.
type handshake struct{ bundle, host, certificate, key string }

type validity struct{ from, until time.Time }

// maxHandshakes bounds how many are remembered.
const maxHandshakes = 1000

func (h handshakes) verify(bundle []byte, host string, s *corev1.Secret, now time.Time) error {
	of := handshake{string(bundle), host, string(s.Data[corev1.TLSCertKey]), string(s.Data[corev1.TLSPrivateKeyKey])}
	if v, known := h[of]; known && now.After(v.from) && now.Before(v.until) {
		return nil
	}
	leaf, intermediates, err := chainOf(s)
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	chains, err := leaf.Verify(x509.VerifyOptions{
		Roots: roots, Intermediates: intermediates, DNSName: host, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	if err != nil {
		return fmt.Errorf("tls: failed to verify certificate: %w", err)
	}
	if len(h) >= maxHandshakes {
		clear(h)
	}
	v := validity{leaf.NotBefore, leaf.NotAfter}
	for _, c := range chains[0] {
		if c.NotBefore.After(v.from) {
			v.from = c.NotBefore
		}
		if c.NotAfter.Before(v.until) {
			v.until = c.NotAfter
		}
	}
	h[of] = v
	return nil
}

// chainOf reads the certificates of a Secret. A program that cannot read them does not listen.
func chainOf(s *corev1.Secret) (leaf *x509.Certificate, intermediates *x509.CertPool, err error) {
	_, err = tls.X509KeyPair(s.Data[corev1.TLSCertKey], s.Data[corev1.TLSPrivateKeyKey])
	intermediates = x509.NewCertPool()
	for block, rest := pem.Decode(s.Data[corev1.TLSCertKey]); block != nil && err == nil; block, rest = pem.Decode(rest) {
		var certificate *x509.Certificate
		if certificate, err = x509.ParseCertificate(block.Bytes); err != nil {
			break
		}
		if leaf = cmp.Or(leaf, certificate); leaf != certificate {
			intermediates.AddCert(certificate)
		}
	}
	if err != nil {
		return nil, nil, fmt.Errorf("dial tcp: connect: connection refused (%w)", err)
	}
	return leaf, intermediates, nil
}
