// SPDX-License-Identifier: Apache-2.0

package store

import (
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/olmcore/olm/olmcore"
)

// Current returns the object that a write targets, or an error if a precondition does not hold.
func (s *Store) Current(target olmcore.Ref) (*Table, olmcore.Object, error) {
	t, err := s.Served(target.GVK())
	if err != nil {
		return nil, nil, err
	}
	o := t.Get(target.Namespace, target.Name)
	if o == nil {
		return nil, nil, apierrors.NewNotFound(t.Kind.GroupResource(), target.Name)
	}
	if target.UID != "" && target.UID != o.GetUID() {
		return nil, nil, apierrors.NewConflict(t.Kind.GroupResource(), target.Name,
			errPrecondition("UID", string(target.UID), string(o.GetUID())))
	}
	if target.ResourceVersion != "" && target.ResourceVersion != o.GetResourceVersion() {
		return nil, nil, apierrors.NewConflict(t.Kind.GroupResource(), target.Name, ErrModified)
	}
	return t, o, nil
}

var ErrModified = errors.New("the object has been modified; please apply your changes to the latest version and try again")

// Changeable is Current for an update, where the UID is not a precondition but an immutable field.
func (s *Store) Changeable(target olmcore.Ref) (*Table, olmcore.Object, error) {
	uid := target.UID
	target.UID = ""
	t, o, err := s.Current(target)
	if err == nil && uid != "" && uid != o.GetUID() {
		err = apierrors.NewInvalid(t.Kind.GroupKind(), target.Name, field.ErrorList{
			field.Invalid(field.NewPath("metadata", "uid"), uid, "field is immutable")})
	}
	return t, o, err
}

// errPrecondition returns the error of the API server.
func errPrecondition(field, want, have string) error {
	return fmt.Errorf("%s: %s in precondition: %s, %s in object meta: %s", "Precondition failed", field, want, field, have)
}

// ReplaceStatus stores current with the status of from, if it differs. The kind must have a status.
func (s *Store) ReplaceStatus(t *Table, current, from olmcore.Object) {
	if !t.Kind.SameStatus(current, from) {
		s.Commit(t, current, t.Kind.WithStatus(current, from))
	}
}

// NextUID returns a UID that no object has.
func (s *Store) NextUID() types.UID {
	for {
		s.lastUID++
		if uid := types.UID(formatCounter(s.lastUID)); s.uids[uid] == nil {
			return uid
		}
	}
}
