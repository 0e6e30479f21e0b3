/*
 * One reliable datagram endpoint of libfabric with two blocks of memory: `landing`, which one peer writes to, and `staging`,
 * from which we write to the peer's landing. The caller serialises all calls of one endpoint.
 *
 * Built by `make fabric` into libtacit_fabric.so, which the fabric crate opens at run time; tacit itself is neither built
 * nor linked against libfabric.
 */
#define _GNU_SOURCE
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Counts up when a signature below changes; the caller compares. */
#define SHIM_VERSION 1
/* Room after the landing block that credits are written to; nobody reads it. */
#define CREDIT_BYTES 64
#define ERROR_BYTES 256
#define BATCH 32

struct tf {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	struct fid_mr *landing_mr, *staging_mr;
	uint8_t *landing, *staging;
	size_t bytes;
	int waits;
	fi_addr_t peer;
	uint64_t remote, remote_key;
	/* Contexts that the provider may write to while a write is under way; a write waits for a free one. */
	struct fi_context2 *contexts;
	uint32_t *free_contexts;
	uint32_t free_count, depth;
	char error[ERROR_BYTES];
};

/* What happened: kind 1, one of our writes has arrived; kind 2, the peer wrote `value` with its data. */
struct tf_event {
	uint32_t kind;
	uint32_t value;
};

int tf_version(void)
{
	return SHIM_VERSION;
}

static int failed(struct tf *f, const char *what, long code)
{
	snprintf(f->error, sizeof f->error, "%s: %s", what, fi_strerror((int)(code < 0 ? -code : code)));
	return -1;
}

const char *tf_error(const struct tf *f)
{
	return f->error;
}

void tf_close(struct tf *f)
{
	if (!f)
		return;
	if (f->ep)
		fi_close(&f->ep->fid);
	if (f->landing_mr)
		fi_close(&f->landing_mr->fid);
	if (f->staging_mr)
		fi_close(&f->staging_mr->fid);
	if (f->cq)
		fi_close(&f->cq->fid);
	if (f->av)
		fi_close(&f->av->fid);
	if (f->domain)
		fi_close(&f->domain->fid);
	if (f->fabric)
		fi_close(&f->fabric->fid);
	if (f->info)
		fi_freeinfo(f->info);
	if (f->landing)
		munmap(f->landing, f->bytes + CREDIT_BYTES);
	if (f->staging)
		munmap(f->staging, f->bytes + CREDIT_BYTES);
	free(f->contexts);
	free(f->free_contexts);
	free(f);
}

static uint8_t *pages(size_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return at == MAP_FAILED ? NULL : at;
}

static int find(struct tf *f, const char *provider, const char *node)
{
	struct fi_info *hints = fi_allocinfo();
	if (!hints)
		return failed(f, "fi_allocinfo", FI_ENOMEM);
	hints->caps = FI_RMA | FI_WRITE | FI_REMOTE_WRITE;
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	/* A write is done when its bytes lie in the peer's memory: an endpoint can be closed after that. */
	hints->tx_attr->op_flags = FI_DELIVERY_COMPLETE | FI_COMPLETION;
	hints->fabric_attr->prov_name = strdup(provider);
	int rc = fi_getinfo(FI_VERSION(1, 14), node, NULL, node ? FI_SOURCE : 0, hints, &f->info);
	fi_freeinfo(hints);
	if (rc)
		return failed(f, "no such provider here (fi_getinfo)", rc);
	if (f->info->domain_attr->cq_data_size < 4)
		return failed(f, "the provider carries less than 4 bytes of data with a write", FI_ENOSYS);
	return 0;
}

/* A queue to wait at, where the provider has one with a time limit: the shm provider's waits forget theirs. */
static int open_queue(struct tf *f)
{
	struct fi_cq_attr attr = { .size = 8192, .format = FI_CQ_FORMAT_DATA, .wait_obj = FI_WAIT_FD };
	f->waits = fi_cq_open(f->domain, &attr, &f->cq, NULL) == 0;
	if (f->waits)
		return 0;
	attr.wait_obj = FI_WAIT_NONE;
	int rc = fi_cq_open(f->domain, &attr, &f->cq, NULL);
	return rc ? failed(f, "fi_cq_open", rc) : 0;
}

static int register_all(struct tf *f)
{
	size_t landing = f->bytes + CREDIT_BYTES;
	int rc = fi_mr_reg(f->domain, f->landing, landing, FI_REMOTE_WRITE, 0, 1, 0, &f->landing_mr, NULL);
	if (rc)
		return failed(f, "fi_mr_reg (landing)", rc);
	rc = fi_mr_reg(f->domain, f->staging, landing, FI_WRITE, 0, 2, 0, &f->staging_mr, NULL);
	return rc ? failed(f, "fi_mr_reg (staging)", rc) : 0;
}

static int open_endpoint(struct tf *f)
{
	struct fi_av_attr av = { .type = FI_AV_TABLE, .count = 1 };
	int rc = fi_fabric(f->info->fabric_attr, &f->fabric, NULL);
	if (rc)
		return failed(f, "fi_fabric", rc);
	if ((rc = fi_domain(f->fabric, f->info, &f->domain, NULL)))
		return failed(f, "fi_domain", rc);
	if ((rc = fi_av_open(f->domain, &av, &f->av, NULL)))
		return failed(f, "fi_av_open", rc);
	if (open_queue(f))
		return -1;
	if ((rc = fi_endpoint(f->domain, f->info, &f->ep, NULL)))
		return failed(f, "fi_endpoint", rc);
	if ((rc = fi_ep_bind(f->ep, &f->av->fid, 0)))
		return failed(f, "fi_ep_bind (av)", rc);
	if ((rc = fi_ep_bind(f->ep, &f->cq->fid, FI_TRANSMIT | FI_RECV)))
		return failed(f, "fi_ep_bind (cq)", rc);
	if ((rc = fi_enable(f->ep)))
		return failed(f, "fi_enable", rc);
	return register_all(f);
}

static int open_contexts(struct tf *f)
{
	size_t size = f->info->tx_attr->size;
	f->depth = size > 256 ? 256 : size > 1 ? (uint32_t)size / 2 : 1;
	f->contexts = calloc(f->depth, sizeof *f->contexts);
	f->free_contexts = calloc(f->depth, sizeof *f->free_contexts);
	if (!f->contexts || !f->free_contexts)
		return failed(f, "contexts", FI_ENOMEM);
	for (; f->free_count < f->depth; f->free_count++)
		f->free_contexts[f->free_count] = f->free_count;
	return 0;
}

/* Opens an endpoint of `provider`, bound to the address `node` where that is not null. Whatever comes back, `*out` is to
 * be closed unless it is null. */
int tf_open(const char *provider, const char *node, size_t bytes, struct tf **out)
{
	struct tf *f = *out = calloc(1, sizeof *f);
	if (!f)
		return -1;
	f->bytes = bytes;
	f->landing = pages(bytes + CREDIT_BYTES);
	f->staging = pages(bytes + CREDIT_BYTES);
	if (!f->landing || !f->staging)
		return failed(f, "mmap", FI_ENOMEM);
	if (find(f, provider, node) || open_endpoint(f))
		return -1;
	return open_contexts(f);
}

uint8_t *tf_landing(struct tf *f)
{
	return f->landing;
}

uint8_t *tf_staging(struct tf *f)
{
	return f->staging;
}

/* What the peer needs: our address (at most `room` bytes), where landing begins for it, and the key of landing. */
int tf_name(struct tf *f, uint8_t *name, size_t room, size_t *length, uint64_t *start, uint64_t *key)
{
	*length = room;
	int rc = fi_getname(&f->ep->fid, name, length);
	if (rc)
		return failed(f, "fi_getname", rc);
	int virtual = (f->info->domain_attr->mr_mode & (FI_MR_VIRT_ADDR | FI_MR_BASIC)) != 0;
	*start = virtual ? (uint64_t)(uintptr_t)f->landing : 0;
	*key = fi_mr_key(f->landing_mr);
	return 0;
}

int tf_connect(struct tf *f, const uint8_t *name, uint64_t start, uint64_t key)
{
	int rc = fi_av_insert(f->av, name, 1, &f->peer, 0, NULL);
	if (rc != 1)
		return failed(f, "fi_av_insert", rc < 0 ? rc : FI_EADDRNOTAVAIL);
	f->remote = start;
	f->remote_key = key;
	return 0;
}

/* Writes `length` bytes from staging to the same offset of the peer's landing. 1: later, the queue is full. */
static int write_at(struct tf *f, size_t offset, size_t length, uint32_t data)
{
	if (!f->free_count)
		return 1;
	uint32_t slot = f->free_contexts[f->free_count - 1];
	ssize_t rc = fi_writedata(f->ep, f->staging + offset, length, fi_mr_desc(f->staging_mr), data, f->peer,
				  f->remote + offset, f->remote_key, &f->contexts[slot]);
	if (rc == -FI_EAGAIN)
		return 1;
	if (rc)
		return failed(f, "fi_writedata", rc);
	f->free_count--;
	return 0;
}

int tf_write(struct tf *f, size_t offset, size_t length, uint32_t data)
{
	if (offset > f->bytes || length > f->bytes - offset)
		return failed(f, "tf_write", FI_EINVAL);
	return write_at(f, offset, length, data);
}

/* Tells the peer `data` with 8 bytes that nobody reads. 1: later. */
int tf_credit(struct tf *f, uint32_t data)
{
	return write_at(f, f->bytes, 8, data);
}

static int queue_error(struct tf *f)
{
	struct fi_cq_err_entry entry = { 0 };
	ssize_t rc = fi_cq_readerr(f->cq, &entry, 0);
	return failed(f, "a write failed", rc > 0 ? entry.err : FI_EIO);
}

/* Moves everything on, and gives up to `room` events; waits for the first up to `wait_ms` where the provider can. -1 is
 * an error. `*waited` says whether it can. */
int tf_poll(struct tf *f, struct tf_event *events, int room, int wait_ms, int *waited)
{
	struct fi_cq_data_entry entries[BATCH];
	size_t count = room < BATCH ? (size_t)room : BATCH;
	ssize_t got = fi_cq_read(f->cq, entries, count);
	*waited = f->waits;
	if (got == -FI_EAGAIN && wait_ms > 0 && f->waits)
		got = fi_cq_sread(f->cq, entries, count, NULL, wait_ms);
	if (got == -FI_EAGAIN || got == -FI_EINTR || got == -FI_ETIMEDOUT)
		return 0;
	if (got == -FI_EAVAIL)
		return queue_error(f);
	if (got < 0)
		return failed(f, "fi_cq_read", got);
	for (ssize_t i = 0; i < got; i++) {
		int remote = (entries[i].flags & FI_REMOTE_CQ_DATA) != 0;
		events[i].kind = remote ? 2 : 1;
		events[i].value = remote ? (uint32_t)entries[i].data : 0;
		struct fi_context2 *context = entries[i].op_context;
		if (!remote && context >= f->contexts && context < f->contexts + f->depth)
			f->free_contexts[f->free_count++] = (uint32_t)(context - f->contexts);
	}
	return (int)got;
}
