// SPDX-License-Identifier: Apache-2.0

package olmruntime

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/olmcore/olm/olmcore"
)

// Executor is an olmcore.Executor over a client: each action as its Record says,
// updates as merge patches with UID and resourceVersion as preconditions.
type Executor struct {
	// Client writes as the controller.
	Client client.Client
	// Config is what the clients of ServiceAccounts are made from; nil refuses
	// actions that are to run as one. Wrap, when set, is put around each of them.
	Config *rest.Config
	Wrap   func(client.Client) client.Client

	mu       sync.Mutex
	accounts map[string]client.Client
}

// maxAccounts bounds the clients that are kept.
const maxAccounts = 1000

// Do implements olmcore.Executor.
func (x *Executor) Do(ctx context.Context, a olmcore.Action) error {
	r, err := olmcore.RecordOf(a)
	if err != nil {
		return err
	}
	c, err := x.clientOf(r.As)
	if err != nil {
		return err
	}
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(r.Target.GVK())
	o.SetNamespace(r.Target.Namespace)
	o.SetName(r.Target.Name)
	switch r.Verb {
	case olmcore.VerbCreate:
		if err := o.UnmarshalJSON(r.Object); err != nil {
			return err
		}
		return c.Create(ctx, o)
	case olmcore.VerbUpdate, olmcore.VerbUpdateStatus:
		patch, err := r.ConditionalPatch()
		if err != nil {
			return err
		}
		if r.Verb == olmcore.VerbUpdateStatus {
			return c.Status().Patch(ctx, o, client.RawPatch(types.MergePatchType, patch))
		}
		return c.Patch(ctx, o, client.RawPatch(types.MergePatchType, patch))
	case olmcore.VerbDelete:
		return c.Delete(ctx, o, &client.DeleteOptions{
			GracePeriodSeconds: r.DeleteOptions.GracePeriodSeconds,
			PropagationPolicy:  r.DeleteOptions.PropagationPolicy,
			Preconditions:      r.DeleteOptions.Preconditions,
		})
	default:
		return fmt.Errorf("unknown verb %q", r.Verb)
	}
}

// clientOf returns the client that writes as a ServiceAccount.
func (x *Executor) clientOf(as *corev1.ObjectReference) (client.Client, error) {
	if as == nil {
		return x.Client, nil
	}
	user := "system:serviceaccount:" + as.Namespace + ":" + as.Name
	x.mu.Lock()
	defer x.mu.Unlock()
	if c := x.accounts[user]; c != nil {
		return c, nil
	}
	if x.Config == nil {
		return nil, fmt.Errorf("cannot act as %s", user)
	}
	config := rest.CopyConfig(x.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user}
	c, err := client.New(config, client.Options{Scheme: x.Client.Scheme(), Mapper: x.Client.RESTMapper()})
	if err != nil {
		return nil, err
	}
	if x.Wrap != nil {
		c = x.Wrap(c)
	}
	if x.accounts == nil || len(x.accounts) >= maxAccounts {
		x.accounts = map[string]client.Client{}
	}
	x.accounts[user] = c
	return c, nil
}
