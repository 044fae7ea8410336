// SPDX-License-Identifier: Apache-2.0

package workloads

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
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/olmcore/olm/fake/internal/crds"
	"github.com/olmcore/olm/fake/internal/store"
	"github.com/olmcore/olm/olmcore"
)

// Servers are the programs behind the Services of a cluster.
type Servers struct {
	store       *store.Store
	deployments *Deployments
	now         func() time.Time
	// handshakes are the TLS handshakes that succeeded.
	handshakes handshakes
}

// NewServers returns the programs behind Services that the Pods of a store and of Deployments run.
func NewServers(s *store.Store, d *Deployments) *Servers {
	return &Servers{store: s, deployments: d, now: d.queue.Now, handshakes: handshakes{}}
}

// Check calls every Service that webhook configurations, CRDs and APIServices reference, and joins the errors.
func (c *Servers) Check() error {
	var problems []error
	check := func(o olmcore.Object, webhook string, at Address) {
		if err := c.Reach(at); err != nil {
			problems = append(problems, fmt.Errorf("%s: %s: %w", olmcore.KeyOf(o), webhook, err))
		}
	}
	for _, o := range c.store.Table(store.MutatingKind).List("") {
		for _, hook := range o.(*admissionregistrationv1.MutatingWebhookConfiguration).Webhooks {
			check(o, hook.Name, AddressOf(hook.ClientConfig))
		}
	}
	for _, o := range c.store.Table(store.ValidatingKind).List("") {
		for _, hook := range o.(*admissionregistrationv1.ValidatingWebhookConfiguration).Webhooks {
			check(o, hook.Name, AddressOf(hook.ClientConfig))
		}
	}
	for _, o := range c.store.Table(store.CRDKind).List("") {
		if conversion := crds.ConversionOf(o.(*apiextensionsv1.CustomResourceDefinition)); conversion != nil {
			check(o, "conversion", AddressOf(crds.ConversionClient(conversion)))
		}
	}
	for _, o := range c.store.Table(store.APIServiceKind).List("") {
		spec := o.(*apiregistrationv1.APIService).Spec
		if spec.Service != nil && !spec.InsecureSkipTLSVerify {
			check(o, "APIService", Address{
				service: types.NamespacedName{Namespace: spec.Service.Namespace, Name: spec.Service.Name},
				port:    spec.Service.Port, path: "/apis/" + spec.Group + "/" + spec.Version, bundle: spec.CABundle,
			})
		}
	}
	return errors.Join(problems...)
}

// Address is the configuration of a client. It has no service if it is a URL.
type Address struct {
	service types.NamespacedName
	port    *int32
	path    string
	bundle  []byte
}

// AddressOf returns the address of a webhook.
func AddressOf(client admissionregistrationv1.WebhookClientConfig) Address {
	if client.Service == nil {
		return Address{}
	}
	s := client.Service
	at := Address{service: types.NamespacedName{Namespace: s.Namespace, Name: s.Name}, port: s.Port, path: "/", bundle: client.CABundle}
	if s.Path != nil {
		at.path = *s.Path
	}
	return at
}

// Reach returns the error of a call, with the message of an API server.
func (c *Servers) Reach(at Address) error {
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

func (c *Servers) connect(at Address, port int32, host string) error {
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
		secrets := []*corev1.Secret{c.deployments.started[d.UID].secret, certificateOf(c.store, d.Namespace, &d.Spec.Template.Spec)}
		if err := c.verify(at, host, secrets...); err != nil {
			return err
		}
	}
	for _, pod := range pods {
		if err := c.verify(at, host, certificateOf(c.store, pod.Namespace, &pod.Spec)); err != nil {
			return err
		}
	}
	return nil
}

// endpoints returns the available Deployments and the ready Pods that a Service selects.
func (c *Servers) endpoints(service *corev1.Service) (deployments []*appsv1.Deployment, pods []*corev1.Pod) {
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

// certificateOf returns the Secret with which a Pod serves, or nil.
func certificateOf(s *store.Store, namespace string, pod *corev1.PodSpec) (found *corev1.Secret) {
	for _, v := range pod.Volumes {
		if v.Secret == nil {
			continue
		}
		secret := store.Get[*corev1.Secret](s, store.SecretKind, namespace, v.Secret.SecretName)
		if secret == nil || len(secret.Data[corev1.TLSCertKey]) == 0 {
			continue
		}
		if found == nil || strings.HasSuffix(secret.Name, "-service-cert") {
			found = secret
		}
	}
	return found
}

// verify is the TLS handshake with a program that serves with one of some Secrets. Nil Secrets are ignored.
func (c *Servers) verify(at Address, host string, secrets ...*corev1.Secret) error {
	secrets = slices.DeleteFunc(slices.Compact(secrets), func(s *corev1.Secret) bool { return s == nil })
	if len(secrets) == 0 {
		return errors.New("dial tcp: connect: connection refused")
	}
	for _, s := range secrets {
		if err := c.handshakes.verify(at.bundle, host, s, c.now()); err != nil {
			return err
		}
	}
	return nil
}

// handshakes remembers the TLS handshakes that succeeded, and from when to when they do: their signatures cost most of
// the work of Check.
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

// chainOf parses the certificates of a Secret. A program that cannot parse them does not listen.
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

func matches(selector *metav1.LabelSelector, set map[string]string) bool {
	s, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && s.Matches(labels.Set(set))
}

func podReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}
