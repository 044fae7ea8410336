// SPDX-License-Identifier: Apache-2.0

// Package certmanager lets cert-manager make the certificates that operators serve with.
package certmanager

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	cmmeta "github.com/cert-manager/cert-manager/pkg/apis/meta/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/olmcore/olm/csv/serving"
	"github.com/olmcore/olm/olmcore"
)

// SelfSigned is the name of the Issuer that is made in a namespace when none is named.
const SelfSigned = "olm-selfsigned"

// ReasonCertificate: an operator needs a certificate from cert-manager. Nothing to do.
const ReasonCertificate = "CertManagerCertificate"

// pace is how often a Certificate is looked at that is not ready.
const pace = 5 * time.Second

// Issuer implements controllers.Issuer. It makes one Certificate for each request, waits until it is ready, and hands
// over what cert-manager put into its Secret.
type Issuer struct {
	// Ref names the Issuer of the operator's namespace, or the ClusterIssuer, that signs. It must give the authority in
	// ca.crt, as CA, Vault and Venafi issuers do. Empty: a self-signed one is made in each namespace.
	Ref cmmeta.IssuerReference
}

// Issue implements controllers.Issuer. The error names a Certificate or Issuer that is another's, what cert-manager
// says of a Certificate that it cannot make, or that it is not installed.
func (i Issuer) Issue(
	ctx context.Context,
	r olmcore.Reader,
	requests []serving.Request,
	now time.Time,
) (issued []serving.Issued, result olmcore.Result, err error) {
	var failures []error
	if i.Ref.Name == "" && len(requests) > 0 {
		action, err := selfSigned(ctx, r, requests[0])
		if err != nil {
			return nil, olmcore.Result{}, err
		}
		result.Actions = append(result.Actions, action...)
	}
	for _, request := range requests {
		found, actions, err := i.answer(ctx, r, request, now)
		result.Actions = append(result.Actions, actions...)
		switch {
		case err != nil:
			failures = append(failures, err)
		case found.IsEmpty():
			result.Requeue(pace)
		default:
			issued = append(issued, serving.Issued{Deployment: request.Deployment, Certificate: found})
		}
	}
	if len(issued)+len(result.Actions) > 0 {
		return issued, result, nil // what failed is asked for again
	}
	return nil, result, errors.Join(failures...)
}

// Name is that of the Certificate of a Service, and of the Secret that cert-manager writes.
func Name(service string) string { return service + "-cert-manager" }

// answer returns the certificate of a request once it is there, and until then what brings it about.
func (i Issuer) answer(
	ctx context.Context,
	r olmcore.Reader,
	request serving.Request,
	now time.Time,
) (serving.Certificate, []olmcore.Action, error) {
	var none serving.Certificate
	live, found, err := get[certmanagerv1.Certificate](ctx, r, certmanagerv1.CertificateKind, request.Namespace, Name(request.Service))
	if err != nil {
		return none, nil, err
	}
	want := i.certificateOf(request, live)
	switch {
	case !found:
		a, err := create(want, request)
		return none, a, err
	case !isOperators(live):
		return none, nil, fmt.Errorf("certificate %s/%s exists and is not managed by an operator", live.Namespace, live.Name)
	case !equality.Semantic.DeepEqual(live, want):
		a, err := update(live, want, request)
		return none, a, err
	}
	if ready, problem := readiness(live); !ready {
		return none, nil, problem
	}
	secret, err := olmcore.Get[*corev1.Secret](ctx, r, request.Namespace, live.Spec.SecretName)
	if err != nil || secret == nil {
		return none, nil, err
	}
	made := serving.Certificate{
		CAPEM:   secret.Data[cmmeta.TLSCAKey],
		CertPEM: secret.Data[corev1.TLSCertKey],
		KeyPEM:  secret.Data[corev1.TLSPrivateKeyKey],
	}
	if len(made.CAPEM) == 0 {
		return none, nil, fmt.Errorf(
			"%s %s gives no authority in ca.crt, which clients could trust",
			live.Spec.IssuerRef.Kind,
			live.Spec.IssuerRef.Name,
		)
	}
	if serving.Inspect(made, request.Hosts, now).Problem != "" {
		return none, nil, nil // cert-manager is about to replace it
	}
	return made, nil, nil
}

// certificateOf is the Certificate for a request, made from what is there.
func (i Issuer) certificateOf(request serving.Request, live *certmanagerv1.Certificate) *certmanagerv1.Certificate {
	c := live.DeepCopy()
	c.TypeMeta = metav1.TypeMeta{APIVersion: certmanagerv1.SchemeGroupVersion.String(), Kind: certmanagerv1.CertificateKind}
	c.Name, c.Namespace = Name(request.Service), request.Namespace
	own(&c.ObjectMeta, request)
	c.Spec.SecretName = c.Name
	c.Spec.DNSNames = request.Hosts
	// Those of cert-manager begin when they are made.
	c.Spec.Duration = &metav1.Duration{Duration: request.NotAfter.Sub(request.NotBefore) - serving.Backdated}
	c.Spec.Usages = []certmanagerv1.KeyUsage{certmanagerv1.UsageDigitalSignature, certmanagerv1.UsageServerAuth}
	c.Spec.PrivateKey = &certmanagerv1.CertificatePrivateKey{
		Algorithm: certmanagerv1.ECDSAKeyAlgorithm, Size: 256, RotationPolicy: certmanagerv1.RotationPolicyAlways,
	}
	c.Spec.IssuerRef = cmmeta.IssuerReference{
		Name: cmp.Or(
			i.Ref.Name,
			SelfSigned,
		), Kind: cmp.Or(i.Ref.Kind, certmanagerv1.IssuerKind), Group: cmp.Or(i.Ref.Group, certmanagerv1.SchemeGroupVersion.Group),
	}
	return c
}

// readiness reports whether cert-manager has made a Certificate as it is, and what it says when it cannot.
func readiness(c *certmanagerv1.Certificate) (ready bool, problem error) {
	for _, condition := range c.Status.Conditions {
		isCurrent := condition.ObservedGeneration == 0 || condition.ObservedGeneration == c.Generation
		switch {
		case !isCurrent || condition.Status != cmmeta.ConditionTrue && condition.Type != certmanagerv1.CertificateConditionIssuing:
		case condition.Type == certmanagerv1.CertificateConditionReady:
			ready = true
		}
		if condition.Type == certmanagerv1.CertificateConditionIssuing && condition.Status == cmmeta.ConditionFalse &&
			condition.Reason == "Failed" {
			problem = fmt.Errorf("cert-manager cannot make certificate %s/%s: %s", c.Namespace, c.Name, condition.Message)
		}
	}
	if ready {
		return true, nil
	}
	return false, problem
}

// selfSigned makes the Issuer of a namespace; no action when it is there, whoever made it.
func selfSigned(ctx context.Context, r olmcore.Reader, request serving.Request) ([]olmcore.Action, error) {
	if _, found, err := get[certmanagerv1.Issuer](ctx, r, certmanagerv1.IssuerKind, request.Namespace, SelfSigned); err != nil || found {
		return nil, err
	}
	o := &certmanagerv1.Issuer{
		TypeMeta:   metav1.TypeMeta{APIVersion: certmanagerv1.SchemeGroupVersion.String(), Kind: certmanagerv1.IssuerKind},
		ObjectMeta: metav1.ObjectMeta{Name: SelfSigned, Namespace: request.Namespace, Labels: map[string]string{olmcore.LabelManaged: "true"}},
	}
	o.Spec.SelfSigned = &certmanagerv1.SelfSignedIssuer{}
	return create(o, request)
}

// isOperators reports whether a Certificate was made for an operator.
func isOperators(c *certmanagerv1.Certificate) bool {
	return slices.ContainsFunc(c.OwnerReferences, func(r metav1.OwnerReference) bool { return r.Kind == "ClusterServiceVersion" })
}

// own makes an object the ClusterServiceVersion's that asks, and no other's.
func own(o *metav1.ObjectMeta, request serving.Request) {
	isItsOwner := func(r metav1.OwnerReference) bool { return olmcore.SameOwnerReference(r, request.Owner) }
	others := slices.DeleteFunc(slices.Clone(o.OwnerReferences), func(r metav1.OwnerReference) bool { return r.Kind == request.Owner.Kind })
	if !slices.ContainsFunc(o.OwnerReferences, isItsOwner) || len(others)+1 != len(o.OwnerReferences) {
		o.OwnerReferences = append(others, request.Owner)
	}
	o.Labels, _ = olmcore.MergeMaps(o.Labels, map[string]string{olmcore.LabelManaged: "true"})
}

// get reads an object of cert-manager, which the library knows no types of. The zero value is one that does not exist.
func get[T any](ctx context.Context, r olmcore.Reader, kind, namespace, name string) (object *T, found bool, err error) {
	object = new(T)
	o, err := olmcore.GetKind(ctx, r, certmanagerv1.SchemeGroupVersion.WithKind(kind), namespace, name)
	switch olmcore.Classify(err) {
	case olmcore.ClassNone:
	case olmcore.Gone:
		return object, false, nil
	case olmcore.NoMatch:
		return nil, false, fmt.Errorf("cert-manager is not installed: %w", err)
	default:
		return nil, false, err
	}
	m, err := olmcore.ToMap(o)
	if err != nil {
		return nil, false, err
	}
	return object, true, runtime.DefaultUnstructuredConverter.FromUnstructured(m, object)
}

func create(o olmcore.Object, request serving.Request) ([]olmcore.Action, error) {
	u, err := untyped(o)
	if err != nil {
		return nil, err
	}
	return []olmcore.Action{olmcore.CreateOf(u, why(request))}, nil
}

func update(before, after olmcore.Object, request serving.Request) ([]olmcore.Action, error) {
	from, err := untyped(before)
	if err != nil {
		return nil, err
	}
	to, err := untyped(after)
	if err != nil {
		return nil, err
	}
	return []olmcore.Action{olmcore.UpdateOf(from, to, why(request))}, nil
}

func why(request serving.Request) olmcore.Cause {
	return olmcore.Cause{
		Reason:  ReasonCertificate,
		Message: fmt.Sprintf("deployment %s needs a certificate for %s", request.Deployment, request.Hosts[0]),
	}
}

func untyped(o olmcore.Object) (*unstructured.Unstructured, error) {
	m, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, err
	}
	unstructured.RemoveNestedField(m, "metadata", "creationTimestamp")
	if status, ok := m["status"].(map[string]any); ok && len(status) == 0 {
		delete(m, "status")
	}
	return &unstructured.Unstructured{Object: m}, nil
}
